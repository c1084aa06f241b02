"""Costs of a program: ops, bytes per link, rounds."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_analysis.event import Event
from mplang_analysis.network import Link, Network, described
from mplang_analysis.op_costs import HasCosts, OpCosts
from mplang_analysis.op_traits import is_joint
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.phrases import in_seconds
from mplang_analysis.protocol_costs import JointOp, LineCost, ProtocolCosts, table_of
from mplang_analysis.records import Records
from mplang_analysis.report import Report, TextTable
from mplang_analysis.rounds import Rounds
from mplang_analysis.subject import line_of, program_of
from mplang_analysis.taint import Flow
from mplang_analysis.type_size import bytes_of
from mplang_analysis.words import When
from mplang_core import Mask, Program
from mplang_core.ext import (
    Graph,
    Level,
    Location,
    Loop,
    Operation,
    PartyCall,
    control_of,
    interface_of,
    messages_of,
    op_defs,
)


@dataclass(frozen=True, slots=True)
class OpCount:
    """Number of times that an op occurs in a program.

    Attributes:
        family: the part of its name before the dot.
        op: its name.
        once: those outside of loops; both branches of a condition count.
        per_iteration: those in a loop, for one turn of each loop around them.
    """

    family: str
    op: str
    once: int
    per_iteration: int


@dataclass(frozen=True, slots=True)
class LinkCost:
    """Upper bound of the traffic from one party to another.

    Attributes:
        sender: the one.
        receiver: the other.
        messages: how many.
        bytes: an estimate of their payloads.
        unknown: messages whose type does not tell their size; they count 0 bytes.
        per_iteration: whether these are the messages in loops, for one turn of each.
    """

    sender: int
    receiver: int
    messages: int
    bytes: int
    unknown: int
    per_iteration: bool


@dataclass(frozen=True, slots=True)
class LoopRounds:
    """The rounds of one turn of a loop, those of loops inside of it left out.

    Attributes:
        line: the loop's.
        rounds: the longest chain of messages that wait for each other.
    """

    line: str
    rounds: int


@dataclass(frozen=True, slots=True)
class UnknownCost:
    """An op that sends messages, or may send some, and does not tell which.

    It is one among parties without :class:`~mplang_core.ext.Communicates`, or one whose kernels
    run together at several parties, as the protocol of an SPU.

    Attributes:
        op: its name.
        line: the user's line, ``demo.py:12``; empty if unknown.
        parties: who runs it.
        count: how often it stands there.
        per_iteration: whether it is in a loop; then the count is for one turn of each.
    """

    op: str
    line: str
    parties: tuple[int, ...]
    count: int
    per_iteration: bool


@dataclass(frozen=True, slots=True)
class Costs(Report):
    """Costs of a program.

    Attributes:
        program: its name.
        ops: by family and name.
        links: by sender and receiver.
        rounds: the longest chain of messages that wait for each other, outside of loops.
        loops: the same per turn of each loop.
        unknown: ops whose messages are in neither links nor rounds, which are then lower bounds.
        lines: what protocols take at each line, if a network was given.
        network: between the parties; ``None`` if none was given.
        ways: how protocols set up what they do, where there are several ways.
    """

    program: str
    ops: tuple[OpCount, ...]
    links: tuple[LinkCost, ...]
    rounds: int
    loops: tuple[LoopRounds, ...]
    unknown: tuple[UnknownCost, ...] = ()
    lines: tuple[LineCost, ...] = ()
    network: Network | None = None
    ways: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of a first run: what protocols compute, and what all messages take.

        What parties compute by themselves is not in it. Lines in loops count for one turn.
        """
        if self.network is None:
            return math.nan
        size = max((row.bytes for row in self.links if not row.per_iteration), default=0)
        return sum(row.total for row in self.lines) + self.network.seconds(self.rounds, size)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "program": self.program,
            "ops": [dataclasses.asdict(row) for row in self.ops],
            "links": [dataclasses.asdict(row) for row in self.links],
            "rounds": self.rounds,
            "loops": [dataclasses.asdict(row) for row in self.loops],
            "unknown": [dataclasses.asdict(row) for row in self.unknown],
            "lines": [dataclasses.asdict(row) for row in self.lines],
            "network": self.network.model_dump() if self.network is not None else None,
            "ways": list(self.ways),
        }

    def tables(self) -> list[TextTable]:
        """Return a table of ops, one of links, and one of rounds."""
        ops = [_texts(row) for row in self.ops]
        links = [
            [f"{row.sender} -> {row.receiver}", str(row.messages), _size(row), _when(row)]
            for row in self.links
        ]
        known = len(links)
        links += [_unknown_texts(row) for row in self.unknown]
        least = "at least " if self.unknown else ""
        rounds = [["outside of loops", f"{least}{self.rounds}"]]
        rounds += [
            [f"per iteration of {_shown(row.line, 'a loop')}", f"{least}{row.rounds}"]
            for row in self.loops
        ]
        return [
            TextTable(
                f"Ops of {quoted(self.program)}",
                ["family", "op", When.ONCE, When.PER_ITERATION],
                ops,
            ),
            TextTable(
                "Links", ["link", "messages", "bytes", "when"], links, range(known, len(links))
            ),
            TextTable("Rounds", ["where", "rounds"], rounds),
            *([table_of(self.lines)] if self.lines else []),
        ]

    def remarks(self) -> list[str]:
        """Return how long it takes, and what the tables leave out."""
        made = []
        if self.network is not None and self.lines:
            made.append(
                f"About {_seconds(self.seconds)} for a first run at {self.network.rtt:g} ms there "
                f"and back and {self.network.rate:g} Mbit/s, {_seconds(self._computing)} of them "
                "computing as on this machine; what parties compute by themselves is not in it."
            )
        if self.ways:
            made.append(f"Oblivious transfers by {', '.join(self.ways)}.")
        if self.unknown:
            names = ", ".join(sorted({quoted(row.op) for row in self.unknown}))
            made.append(
                f"Messages, bytes and rounds are lower bounds: those of {names} are not counted, "
                "which may be most of them, as in a protocol on secret shares. "
                'mp.analysis.costs(program, link="lan") counts those of an SPU; a run counts all: '
                "mp.record(host) on a simulator."
            )
        return made

    @property
    def _computing(self) -> float:
        return sum(row.seconds for row in self.lines)


def costs(program: Any, link: Link | Mapping[str, float] | None = None) -> Costs:
    """Count ops, estimate bytes per link, and find the longest chain of messages.

    What the host sends is not in it. Nor is what ops send that do not tell it, such as those of an
    SPU, whose protocol does: they are listed as *unknown*, and the numbers are lower bounds. With a
    network the protocols are asked, which takes seconds: each op of libspu's code is counted once
    on made-up data, and :attr:`Costs.lines` tells what each line takes.

    Args:
        program: a program, or a function that was traced or compiled.
        link: the network between the parties: ``"lan"``, ``"wan"``, or ``{"rtt": 40, "rate": 100}``
            in milliseconds and megabits a second.

    Raises:
        TraceError: it is not a program.
        VerifyError: the program breaks a rule.
        ConfigError: there is no such network.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     x = mp.pshfl_s(mp.constant([1, 2]), 1, [0])
        ...     return mp.pshfl_s(x, 0, [1])
        >>> found = costs(mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program), link="wan")
        >>> found.rounds, [(link.sender, link.receiver, link.bytes) for link in found.links]
        (2, [(0, 1, 16), (1, 0, 16)])
        >>> round(found.seconds, 3)
        0.04
    """
    found = program_of(program)
    rounds = Rounds(found.mask)
    rounds.start(found.graph)
    unknown, protocols = [], None if link is None else ProtocolCosts(described(link))
    for joint in _not_told(found.graph, found.mask, found.mask, None, False):
        takes = None if protocols is None else _asked(joint, protocols.network)
        if protocols is None or takes is None:
            unknown.append(joint)
        else:
            protocols.add(joint, takes)
    return Costs(
        program=found.name,
        ops=Records(_ops(found.graph)),
        links=Records(_links(Flow(found).events)),
        rounds=rounds.longest,
        loops=Records(LoopRounds(str(line or ""), turn) for line, turn in rounds.loops),
        unknown=Records(_unknown(unknown)),
        lines=() if protocols is None else protocols.rows(),
        network=None if protocols is None else protocols.network,
        ways=() if protocols is None else tuple(sorted(protocols.ways)),
    )


def _asked(joint: JointOp, network: Network) -> OpCosts | None:
    asked = interface_of(joint.op, HasCosts)
    return None if asked is None else asked.costs(joint.op, network)


def _unknown(joints: Iterable[JointOp]) -> Iterator[UnknownCost]:
    counts = Counter(
        (each.op.opcode, str(each.line or ""), each.parties, each.in_loop) for each in joints
    )
    for (op, line, parties, in_loop), count in counts.items():
        yield UnknownCost(op, line, tuple(parties), count, in_loop)


def sends_untold(program: Program) -> bool:
    """Return whether an op of a program sends messages that it does not declare, as an SPU's."""
    return any(True for _ in _not_told(program.graph, program.mask, program.mask, None, False))


def _not_told(
    graph: Graph, world: Mask, parties: Mask, around: Location | None, in_loop: bool
) -> Iterator[JointOp]:
    """Yield each op with messages that it does not tell.

    Args:
        graph: the graph.
        world: the parties of the program.
        parties: those that run the graph; all, if they are known only at run time.
        around: the line of the op around.
        in_loop: whether the graph is run more than once.
    """
    for op in graph.ops:
        line, control = line_of(op, around), control_of(op)
        if len(parties) > 1 and _sends_untold(op, world):
            yield JointOp(op, line, parties, in_loop)
        inner = control.parties if isinstance(control, PartyCall) else None
        again = in_loop or isinstance(control, Loop)
        for region in op.regions.values():
            yield from _not_told(region, world, inner or parties, line, again)


def _sends_untold(op: Operation, world: Mask) -> bool:
    op_def = op_defs.get(op.opcode)
    if op_def is not None and op_def.level is Level.PARTY:
        return messages_of(op, world) is None
    return is_joint(op)


def _ops(graph: Graph) -> Iterator[OpCount]:
    counted: Counter[tuple[str, bool]] = Counter(_walk(graph, False))
    for name in sorted({name for name, _ in counted}):
        family = name.partition(".")[0]
        yield OpCount(family, name, counted[name, False], counted[name, True])


def _walk(graph: Graph, in_loop: bool) -> Iterator[tuple[str, bool]]:
    for op in graph.ops:
        yield op.opcode, in_loop
        for region in op.regions.values():
            yield from _walk(region, in_loop or isinstance(control_of(op), Loop))


def _links(events: Sequence[Event]) -> Iterator[LinkCost]:
    sizes: dict[tuple[int, int, bool], list[int | None]] = {}
    for event in events:
        if event.sent and event.sender is not None and isinstance(event.receiver, int):
            key = event.sender, event.receiver, When.PER_ITERATION in event.when
            sizes.setdefault(key, []).append(bytes_of(event.type))
    for (sender, receiver, in_loop), found in sorted(sizes.items()):
        known = [size for size in found if size is not None]
        unknown = len(found) - len(known)
        yield LinkCost(sender, receiver, len(found), sum(known), unknown, in_loop)


def _texts(row: OpCount) -> list[str]:
    return [row.family, row.op, str(row.once), str(row.per_iteration)]


def _unknown_texts(row: UnknownCost) -> list[str]:
    when = When.PER_ITERATION if row.per_iteration else When.ONCE
    times = f", {row.count} times" if row.count > 1 else ""
    what = f"{when}: {row.op} at {_shown(row.line, '?')}{times}"
    return [f"among {', '.join(map(str, row.parties))}", "unknown", "unknown", what]


def _size(row: LinkCost) -> str:
    return f"{row.bytes}" + (f" + {row.unknown} of unknown size" if row.unknown else "")


def _shown(line: str, unknown: str) -> str:
    return quoted_line(line) if line else unknown


def _when(row: LinkCost) -> str:
    return When.PER_ITERATION if row.per_iteration else When.ONCE


def _seconds(seconds: float) -> str:
    return in_seconds(seconds) if seconds < 100 else f"{seconds / 60:.0f} minutes"

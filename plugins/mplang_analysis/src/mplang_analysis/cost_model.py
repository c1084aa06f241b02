"""Costs of a program: ops, bytes per link, rounds."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_analysis.event import Event
from mplang_analysis.op_traits import is_joint
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.report import Report, TextTable
from mplang_analysis.rounds import Rounds
from mplang_analysis.subject import line_of, program_of
from mplang_analysis.taint import Flow
from mplang_analysis.type_size import bytes_of
from mplang_analysis.words import When
from mplang_core import Mask
from mplang_core.ext import (
    Graph,
    Level,
    Location,
    Loop,
    Operation,
    PartyCall,
    control_of,
    messages_of,
    op_defs,
)


@dataclass(frozen=True, slots=True)
class OpCount:
    """How often an op stands in a program.

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
    """What one party sends to another, at most.

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
    """What a program costs.

    Attributes:
        program: its name.
        ops: by family and name.
        links: by sender and receiver.
        rounds: the longest chain of messages that wait for each other, outside of loops.
        loops: the same per turn of each loop.
        unknown: ops whose messages are in neither links nor rounds, which are then lower bounds.
    """

    program: str
    ops: tuple[OpCount, ...]
    links: tuple[LinkCost, ...]
    rounds: int
    loops: tuple[LoopRounds, ...]
    unknown: tuple[UnknownCost, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "program": self.program,
            "ops": [dataclasses.asdict(row) for row in self.ops],
            "links": [dataclasses.asdict(row) for row in self.links],
            "rounds": self.rounds,
            "loops": [dataclasses.asdict(row) for row in self.loops],
            "unknown": [dataclasses.asdict(row) for row in self.unknown],
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
        ]

    def remarks(self) -> list[str]:
        """Return what the tables leave out."""
        if not self.unknown:
            return []
        names = ", ".join(sorted({quoted(row.op) for row in self.unknown}))
        return [
            f"Messages, bytes and rounds are lower bounds: those of {names} are not counted, which "
            "may be most of them, as in a protocol on secret shares. A run counts them: "
            "mp.record(host) on a simulator."
        ]


def costs(program: Any) -> Costs:
    """Count ops, estimate bytes per link, and find the longest chain of messages.

    What the host sends is not in it. Nor is what ops send that do not tell it, such as those of an
    SPU, whose protocol does: they are listed as *unknown*, and the numbers are lower bounds.

    Args:
        program: a program, or a function that was traced or compiled.

    Raises:
        TraceError: it is no program.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     x = mp.pshfl_s(mp.constant([1, 2]), 1, [0])
        ...     return mp.pshfl_s(x, 0, [1])
        >>> found = costs(mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program))
        >>> found.rounds, [(link.sender, link.receiver, link.bytes) for link in found.links]
        (2, [(0, 1, 16), (1, 0, 16)])
    """
    found = program_of(program)
    rounds = Rounds(found.mask)
    rounds.start(found.graph)
    return Costs(
        program=found.name,
        ops=tuple(_ops(found.graph)),
        links=tuple(_links(Flow(found).events)),
        rounds=rounds.longest,
        loops=tuple(LoopRounds(str(line or ""), turn) for line, turn in rounds.loops),
        unknown=tuple(_unknown(found.graph, found.mask)),
    )


def _unknown(graph: Graph, world: Mask) -> Iterator[UnknownCost]:
    found = Counter(_not_told(graph, world, world, None, False))
    for (op, line, parties, in_loop), count in found.items():
        yield UnknownCost(op, line, tuple(parties), count, in_loop)


def _not_told(
    graph: Graph, world: Mask, parties: Mask, around: Location | None, in_loop: bool
) -> Iterator[tuple[str, str, Mask, bool]]:
    """Yield op, line, parties, and whether it is in a loop, of each op with unknown messages.

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
            yield op.opcode, str(line or ""), parties, in_loop
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

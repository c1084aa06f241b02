"""Costs of the protocols in a program, by the user's lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mplang_analysis.network import Network
from mplang_analysis.op_costs import OpCosts, StepCost
from mplang_analysis.party_names import quoted_line
from mplang_analysis.phrases import in_seconds
from mplang_analysis.report import TextTable
from mplang_core import Mask
from mplang_core.ext import Location, Operation

BAR = 8  # characters of the longest, so that a terminal of 80 has room for the steps
MOST_NAMED = 3  # steps of a line


@dataclass(frozen=True, slots=True)
class LineCost:
    """Costs of a protocol at a line, all its parties together.

    Attributes:
        line: the user's, ``demo.py:12``; what is set up once in a session has none.
        op: the op, ``spu.run_jax``.
        steps: what it does there, the costliest first: ``multiply 22×``.
        parties: who run it.
        messages: how many.
        bytes: of them.
        seconds: that each party computes, on the machine where this was counted.
        network_seconds: that messages take on their way, while nobody computes.
        spread: share by which messages and bytes may differ from run to run.
        known: whether all steps are counted; otherwise this is the least.
        per_iteration: whether this is for one turn of each loop around it.
        set_up: whether it is done once in a session, and kept.
    """

    line: str
    op: str
    steps: tuple[str, ...]
    parties: tuple[int, ...]
    messages: int
    bytes: int
    seconds: float
    network_seconds: float
    spread: float = 0.0
    known: bool = True
    per_iteration: bool = False
    set_up: bool = False

    @property
    def total(self) -> float:
        """Seconds of computing and of the network."""
        return self.seconds + self.network_seconds


@dataclass(frozen=True, slots=True)
class JointOp:
    """Op whose messages its kernels send, as they run together at several parties.

    Attributes:
        op: the op.
        line: the user's line.
        parties: who run it.
        in_loop: whether it is in a loop.
    """

    op: Operation
    line: Location | None
    parties: Mask
    in_loop: bool


class ProtocolCosts:
    """Collects what protocols take.

    Args:
        network: between the parties.

    Attributes:
        network: the same.
        ways: how parties set up what they set up, where there are several ways.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.ways: set[str] = set()
        self._steps: dict[tuple[str, str, tuple[int, ...], bool], list[StepCost]] = {}
        self._set_up: dict[tuple[str, tuple[int, ...]], dict[str, StepCost]] = {}

    def add(self, joint: JointOp, costs: OpCosts) -> None:
        """Add what an op takes."""
        parties = tuple(joint.parties)
        for step in costs.steps:
            line = str(step.line or joint.line or "")
            again = joint.in_loop or not step.turns_known
            key = line, joint.op.opcode, parties, again
            self._steps.setdefault(key, []).append(step)
        set_up = self._set_up.setdefault((joint.op.opcode, parties), {})
        set_up.update({each.name: each for each in costs.set_up if each.name not in set_up})
        self.ways |= {costs.way} - {""}

    def rows(self) -> tuple[LineCost, ...]:
        """Return what each line takes, and what is set up."""
        made = [
            self._row(line, op, parties, steps, again, False)
            for (line, op, parties, again), steps in self._steps.items()
        ]
        for (op, parties), set_up in self._set_up.items():
            made.append(self._row("", op, parties, list(set_up.values()), False, True))
        return tuple(row for row in made if row.messages or row.total > 1e-4 or not row.known)

    def _row(
        self,
        line: str,
        op: str,
        parties: tuple[int, ...],
        steps: Sequence[StepCost],
        again: bool,
        set_up: bool,
    ) -> LineCost:
        def total(name: str) -> float:
            return float(sum(getattr(step, name) for step in steps))

        size = total("bytes")
        differs = sum(step.spread * step.bytes for step in steps)
        return LineCost(
            line=line,
            op=op,
            steps=tuple(_named(steps)),
            parties=parties,
            messages=round(total("messages")),
            bytes=round(size),
            seconds=total("seconds"),
            network_seconds=self.network.seconds(total("rounds"), total("in_turn")),
            spread=differs / size if size else 0.0,
            known=all(step.known for step in steps),
            per_iteration=again,
            set_up=set_up,
        )


def table_of(rows: Sequence[LineCost]) -> TextTable:
    """Return a table of lines, whose last column is a picture of their seconds."""
    longest = max((row.total for row in rows), default=0.0) or 1.0
    columns = ["line", "steps", "among", "messages", "bytes", "computing", "network", "when", ""]
    texts = [
        [
            quoted_line(row.line) if row.line else "?",
            ", ".join(row.steps),
            ", ".join(map(str, row.parties)),
            _amount(row.messages, row),
            _amount(row.bytes, row),
            in_seconds(row.seconds),
            in_seconds(row.network_seconds),
            _when(row),
            "█" * round(BAR * row.total / longest),
        ]
        for row in rows
    ]
    unknown = [i for i, row in enumerate(rows) if not row.known]
    return TextTable("What protocols take, line by line", columns, texts, unknown)


def _named(steps: Iterable[StepCost]) -> list[str]:
    """Return what a line does most: the names of steps, and how often."""
    costs, times = defaultdict[str, float](float), Counter[str]()
    for step in steps:
        costs[step.name] += step.seconds + step.bytes * 1e-9
        times[step.name] += round(step.times)
    first = sorted(costs, key=costs.__getitem__, reverse=True)[:MOST_NAMED]
    named = [f"{name} {times[name]}×" if times[name] > 1 else name for name in first]
    return [*named, *(["…"] if len(costs) > MOST_NAMED else [])]


def _amount(amount: int, row: LineCost) -> str:
    least = "" if row.known else "at least "
    return f"{least}{amount:,}" + (f" ± {row.spread:.0%}" if row.spread else "")


def _when(row: LineCost) -> str:
    if row.set_up:
        return "once a session"
    return "per iteration" if row.per_iteration else "once"

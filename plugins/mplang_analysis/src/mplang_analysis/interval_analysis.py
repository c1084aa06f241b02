"""Interval analysis: abstract interpretation of a program over intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from mplang_analysis.interval import UNKNOWN, Interval, hull
from mplang_analysis.op_ranges import HasRanges, NumberStatus, OpRanges
from mplang_analysis.range_inputs import Basis, Given, of_type
from mplang_analysis.subject import line_of
from mplang_core import Program
from mplang_core.ext import (
    Branch,
    Call,
    DeclaredRange,
    Forwards,
    Graph,
    Location,
    Loop,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    interface_of,
)

MAX_TURNS = 300
MAX_OPS = 3000  # run abstractly; an op may be a whole compiled function
PATIENCE = 20  # turns before what still grows is not known

_BASES: Sequence[Basis] = ("known", "declared", "observed")
_STATUSES: Sequence[NumberStatus] = ("", "fits", "vanishes", "overflows", "not known")


@dataclass(frozen=True, slots=True)
class Finding:
    """Analysis result for an output of an op, or of a step inside of it."""

    op: str
    step: str
    given: Given
    status: NumberStatus
    line: Location | None

    def __or__(self, other: Finding) -> Finding:
        status = max(self.status, other.status, key=_STATUSES.index)
        return Finding(self.op, self.step, join(self.given, other.given), status, self.line)


def join(first: Given, *others: Given) -> Given:
    """Return what holds for any of several values."""
    everything = [first, *others]
    interval = reduce(lambda a, b: a | b, (each.interval for each in everything))
    return Given(interval, max((each.basis for each in everything), key=_BASES.index))


@dataclass(slots=True)
class Numbers:
    """A run of a verified program on intervals.

    Args:
        program: the program.
        inputs: per input of the graph its interval.

    Attributes:
        findings: in the order of first runs; of a loop, for all turns together.
        results: per result of the program.
    """

    program: Program
    inputs: Sequence[Given]
    findings: dict[tuple[int, str, int], Finding] = field(default_factory=dict)
    results: Sequence[Given] = ()
    _spent: int = 0

    def __post_init__(self) -> None:
        self.results = self._walk(self.program.graph, self.inputs, None)

    def _walk(self, graph: Graph, inputs: Sequence[Given], around: Location | None) -> list[Given]:
        env: dict[Value, Given] = dict(zip(graph.inputs, inputs, strict=True))
        for op in graph.ops:
            self._spent += 1
            outs = self._step(op, [env[value] for value in op.inputs], line_of(op, around))
            env.update(zip(op.outputs, outs, strict=True))
        return [env[value] for value in graph.outputs]

    # -- ops that have a rule of their own, or none

    def _apply(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        found = self._ask(op, ins)
        basis: Basis = "declared" if found.declared else join(Given(), *ins).basis
        for i, step in enumerate(found.steps):
            inner = Finding(
                op.opcode, step.name, Given(step.interval, basis), step.status, step.line or line
            )
            self._record(op, step.name, i, inner)
        statuses = found.statuses or [""] * len(found.outputs)
        outs = []
        for value, interval, status in zip(op.outputs, found.outputs, statuses, strict=True):
            known = of_type(value.type) if interval.open else interval
            outs.append(Given(known, "known" if known.open else basis))
            self._record(op, "", len(outs), Finding(op.opcode, "", outs[-1], status, line))
        return outs

    def _ask(self, op: Operation, ins: Sequence[Given]) -> OpRanges:
        rule, check = interface_of(op, HasRanges), interface_of(op, DeclaredRange)
        if rule is not None and not op.regions:
            return rule.ranges(op, [each.interval for each in ins])
        if check is not None:
            return OpRanges(
                [_within(each.interval, *check.declared(op)) for each in ins], declared=True
            )
        return OpRanges([UNKNOWN] * len(op.outputs))

    def _record(self, op: Operation, step: str, i: int, finding: Finding) -> None:
        key = id(op), step, i
        self.findings[key] = self.findings[key] | finding if key in self.findings else finding

    # -- ops that tell how values go through them

    def _step(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        control = control_of(op)
        match control:
            case Call() | PartyCall():
                return self._walk(op.regions[control.region], ins, line)
            case Branch():
                return self._branch(op, control, ins, line)
            case Loop():
                return self._loop(op, control, ins, line)
        literal, forwards = interface_of(op, PublicLiteral), interface_of(op, Forwards)
        if literal is not None:
            return [_numbers_in(literal.literal(op))]
        if forwards is not None:
            copies = [forwards.sources(op, i) for i in range(len(op.outputs))]
            return [join(*(ins[i] for i in each)) for each in copies]
        return self._apply(op, ins, line)

    def _branch(
        self, op: Operation, branch: Branch, ins: Sequence[Given], line: Location | None
    ) -> Sequence[Given]:
        predicate, *args = ins
        outs = [
            self._walk(op.regions[name], args, line)
            for name, taken in branch.taken
            if taken in predicate.interval
        ]
        return [join(*values) for values in zip(*outs, strict=True)]

    def _loop(
        self, op: Operation, loop: Loop, ins: Sequence[Given], line: Location | None
    ) -> Sequence[Given]:
        """Go round as long as the condition is certain; then widen until nothing grows."""
        size = len(op.outputs)
        state, captures = list(ins[:size]), list(ins[size:])
        for _ in range(MAX_TURNS):
            goes_on = self._walk(op.regions[loop.condition], state + captures, line)[0].interval
            if goes_on == Interval(0, 0):
                return state
            if goes_on != Interval(1, 1) or self._spent > MAX_OPS:
                break
            state = self._walk(op.regions[loop.body], state + captures, line)
        return self._widen(op, loop, state, captures, line)

    def _widen(
        self,
        op: Operation,
        loop: Loop,
        state: Sequence[Given],
        captures: Sequence[Given],
        line: Location | None,
    ) -> Sequence[Given]:
        """Return intervals that hold after any number of turns."""
        now, turn = list(state), 0
        while True:
            self._walk(op.regions[loop.condition], now + list(captures), line)
            after = self._walk(op.regions[loop.body], now + list(captures), line)
            wider = [join(a, b) for a, b in zip(now, after, strict=True)]
            if wider == now:
                return now
            turn += 1
            if turn > PATIENCE:
                wider = [
                    a if a == b else Given(of_type(value.type), b.basis)
                    for value, a, b in zip(op.outputs, now, wider, strict=True)
                ]
            now = wider


def _numbers_in(value: np.ndarray[Any, Any]) -> Given:
    if value.dtype.kind not in "fiub" or value.size == 0:
        return Given()
    return Given(hull([value.min().item(), value.max().item()]))


def _within(given: Interval, low: float, high: float) -> Interval:
    """Return what a check of a range lets pass; all of the range if that always fails."""
    low_end, high_end = max(given.low, low), min(given.high, high)
    return Interval(low_end, high_end) if low_end <= high_end else Interval(low, high)

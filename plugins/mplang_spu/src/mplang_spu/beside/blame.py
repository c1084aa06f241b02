"""Blame: which op of a function gave the wrong number.

The function runs again, on SPU and in float64, with all inner values as results. The float64
run goes on with SPU's decisions. A wrong result is followed back to the first wrong value whose
operands are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_spu.beside import exact
from mplang_spu.beside.decisions import Case, is_decision, is_near, judge
from mplang_spu.beside.exact import Array
from mplang_spu.beside.flat import Flat, Op
from mplang_spu.beside.rerun import Setting, rerun
from mplang_spu.beside.tolerance import Difference, compare

__all__ = ["Fault", "blame", "fault_of"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A wrong number, and the op that gave it.

    Attributes:
        op: its index among the ops of the flat function; ``None`` where an operand is returned.
        number: of the value.
        difference: its worst element.
    """

    op: int | None
    number: int
    difference: Difference


def blame(
    function: Flat,
    shares: Sequence[Sequence[Any]],
    operands: Sequence[Array],
    wrong: Mapping[int, Difference],
    setting: Setting,
) -> Fault | None:
    """Find the op that a wrong result comes from.

    Args:
        function: what SPU ran.
        shares: libspu's share of each operand, per member.
        operands: the operands in plain.
        wrong: the results that are wrong, by the number of the value.
        setting: how SPU ran.

    Returns:
        ``None`` where the results are right: numbers were nearly equal, and SPU decided
        otherwise.
    """
    trace = _Trace(function, shares, operands, setting)
    makers = _makers(function)
    slices = _slice(function, makers, wrong)
    again = {n: trace.off[n] for n in wrong if trace.off[n].is_wrong}
    bad = {
        number: trace.off[number]
        for i in slices
        for number in function.ops[i].results
        if i in trace.cases and trace.off[number].is_wrong
    }
    start = max(again or bad, key=lambda n: (again or bad)[n].severity, default=None)
    if start is None:
        if any(i in trace.cases and is_near(trace.cases[i]) for i in slices):
            return None
        return fault_of(function, wrong)
    return _follow(function, makers, trace.off, start)


def fault_of(function: Flat, wrong: Mapping[int, Difference]) -> Fault:
    """Blame the op that gives the worst result."""
    number, difference = max(wrong.items(), key=lambda item: item[1].severity)
    return Fault(_makers(function).get(number), number, difference)


def _makers(function: Flat) -> dict[int, int]:
    """Return which op gives a value."""
    return {number: i for i, op in enumerate(function.ops) for number in op.results}


class _Trace:
    """All values of a function: on SPU, and in float64 along SPU's decisions."""

    def __init__(
        self,
        function: Flat,
        shares: Sequence[Sequence[Any]],
        operands: Sequence[Array],
        setting: Setting,
    ) -> None:
        step, count = setting.step, function.inputs
        literal = {n for op in function.ops if op.is_literal for n in op.results}
        inner = [n for op in function.ops for n in op.results]
        shown = [n for n in inner if n not in literal]
        decisions = [
            n for op in function.ops if is_decision(op, function.kinds) for n in op.results
        ]
        on_spu = dict(zip(shown, rerun(function.exposed(shown), shares, setting), strict=True))
        taken = [on_spu[n] for n in decisions]
        along = exact.run(function.exposed(inner, decisions, 64), [*operands, *taken])
        local = exact.run(function.exposed(inner, shown, 64), [*operands, *on_spu.values()])
        given = dict(enumerate(operands))
        values = given | dict(zip(inner, along, strict=True))
        locals_ = given | dict(zip(inner, local, strict=True))
        found = values | on_spu
        followed = values | dict(zip(decisions, taken, strict=True))
        self.off = dict.fromkeys(range(count), Difference(0)) | dict.fromkeys(
            literal, Difference(0)
        )
        self.cases: dict[int, Case] = {}
        for i, op in enumerate(function.ops):
            if op.is_literal:
                continue
            if is_decision(op, function.kinds):
                case = Case(
                    op,
                    [followed[n] for n in op.operands],
                    [values[n] for n in op.results],
                    [found[n] for n in op.operands],
                    [found[n] for n in op.results],
                    [locals_[n] for n in op.results],
                    step,
                )
                self.cases[i] = case
                self.off.update(zip(op.results, judge(case), strict=True))
            else:
                self.off.update((n, compare(found[n], values[n], step)) for n in op.results)


def _slice(function: Flat, makers: dict[int, int], wrong: Mapping[int, Difference]) -> list[int]:
    """Return the ops that results depend on."""
    found: set[int] = set()
    todo = [makers[n] for n in wrong if n in makers]
    while todo:
        i = todo.pop()
        if i not in found:
            found.add(i)
            todo.extend(makers[n] for n in function.ops[i].operands if n in makers)
    return sorted(found)


def _follow(
    function: Flat, makers: dict[int, int], off: dict[int, Difference], start: int
) -> Fault:
    """Go back from a wrong value to the op that made it of right ones."""
    number = start
    while number in makers:
        op: Op = function.ops[makers[number]]
        bad = [n for n in op.operands if off[n].is_wrong]
        if not bad:
            break
        number = max(bad, key=lambda n: off[n].severity)
    return Fault(makers.get(number), number, off[number])

"""Blame: which op of a function gave the wrong number.

The function runs again, on SPU and in float64, with all inner values as results. The float64
run goes on with SPU's decisions. A wrong result is followed back to the first wrong value whose
operands are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.ties import explained_by_ties
from mplang_spu.reference_check.tolerance import Difference
from mplang_spu.reference_check.trace import Run, trace

__all__ = ["Fault", "locate_fault", "worst_fault"]


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


def locate_fault(
    run: Run, found: Mapping[int, Array], wrong: Mapping[int, Difference]
) -> Fault | None:
    """Find the op that a wrong result comes from.

    Args:
        run: what SPU ran.
        found: the results that SPU gave, by the number of the value.
        wrong: how wrong some of them are.

    Returns:
        ``None`` where the results are right: numbers were nearly equal, and SPU decided
        otherwise.
    """
    function, traced = run.function, trace(run)
    makers = _producers(function)
    behind = _dependencies(function, makers, wrong)
    decided = {n for i in behind if i in traced.decisions for n in function.ops[i].results}
    for suspects in (set(wrong), decided):
        off = {n: traced.differences[n] for n in suspects if traced.differences[n].is_wrong}
        if off:
            return _trace_back(function, makers, traced.differences, _worst(off))
    if decided and explained_by_ties(run, {n: found[n] for n in wrong}):
        return None
    return worst_fault(function, wrong)


def worst_fault(function: FlatFunction, wrong: Mapping[int, Difference]) -> Fault:
    """Blame the op that gives the worst result."""
    number = _worst(wrong)
    return Fault(_producers(function).get(number), number, wrong[number])


def _worst(off: Mapping[int, Difference]) -> int:
    return max(off, key=lambda number: off[number].severity)


def _producers(function: FlatFunction) -> dict[int, int]:
    """Return which op gives a value."""
    return {number: i for i, op in enumerate(function.ops) for number in op.results}


def _dependencies(
    function: FlatFunction, makers: Mapping[int, int], wrong: Mapping[int, Difference]
) -> list[int]:
    """Return the ops that results depend on."""
    found: set[int] = set()
    todo = [makers[n] for n in wrong if n in makers]
    while todo:
        i = todo.pop()
        if i not in found:
            found.add(i)
            todo.extend(makers[n] for n in function.ops[i].operands if n in makers)
    return sorted(found)


def _trace_back(
    function: FlatFunction, makers: Mapping[int, int], off: Mapping[int, Difference], start: int
) -> Fault:
    """Go back from a wrong value to the op that made it of right ones."""
    number = start
    while number in makers:
        wrong = {n: off[n] for n in function.ops[makers[number]].operands if off[n].is_wrong}
        if not wrong:
            break
        number = _worst(wrong)
    return Fault(makers.get(number), number, off[number])

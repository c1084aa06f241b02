"""Fault localization: the op of a function that gave a wrong number.

The function runs again, on SPU and in float64, with all inner values as results. The float64 run
follows SPU's decisions. A wrong result is traced back to the first wrong value with correct
operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mplang_spu.lowering.splats import MOVES
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.run import Run
from mplang_spu.reference_check.ties import explained_by_ties
from mplang_spu.reference_check.tolerance import Difference
from mplang_spu.reference_check.trace import trace


@dataclass(frozen=True, slots=True)
class Fault:
    """Wrong number, and the op that gave it.

    Attributes:
        op: index of the op in the flat function; ``None`` if an operand is returned unchanged.
        number: of the value.
        difference: its worst element.
    """

    op: int | None
    number: int
    difference: Difference


def locate_fault(
    run: Run, found: Mapping[int, Array], wrong: Mapping[int, Difference]
) -> Fault | None:
    """Locate the op that a wrong result comes from.

    Args:
        run: what SPU ran.
        found: the results that SPU gave, by value number.
        wrong: the difference of each wrong result.

    Returns:
        The fault; ``None`` if the results are correct for a different decision about nearly equal
        numbers.
    """
    function, traced = run.function, trace(run)
    producers = _producers(function)
    dependencies = _dependencies(function, producers, wrong)
    decided = {n for i in dependencies if i in traced.decisions for n in function.ops[i].results}
    for suspects in (set(wrong), decided):
        off = {n: traced.differences[n] for n in sorted(suspects) if traced.differences[n].is_wrong}
        if off:
            return _trace_back(function, producers, traced.differences, _worst(off))
    if decided and explained_by_ties(run, traced, {n: found[n] for n in wrong}):
        return None
    return worst_fault(function, wrong)


def worst_fault(function: FlatFunction, wrong: Mapping[int, Difference]) -> Fault:
    """Return the fault of the worst result.

    Args:
        function: what SPU ran.
        wrong: the difference of each wrong result, by value number.

    Returns:
        The op that gives the worst result: the one before those that only move its elements.
    """
    number, producers = _worst(wrong), _producers(function)
    op = producers.get(number)
    while op is not None and function.ops[op].name in MOVES:
        before = producers.get(function.ops[op].operands[0])
        if before is None:
            break
        op = before
    return Fault(op, number, wrong[number])


def _worst(off: Mapping[int, Difference]) -> int:
    return max(off, key=lambda number: off[number].severity)


def _producers(function: FlatFunction) -> dict[int, int]:
    """Return the index of the op that produces each value."""
    return {number: i for i, op in enumerate(function.ops) for number in op.results}


def _dependencies(
    function: FlatFunction, producers: Mapping[int, int], wrong: Mapping[int, Difference]
) -> list[int]:
    """Return the ops that results depend on."""
    found: set[int] = set()
    todo = [producers[n] for n in wrong if n in producers]
    while todo:
        i = todo.pop()
        if i not in found:
            found.add(i)
            todo.extend(producers[n] for n in function.ops[i].operands if n in producers)
    return sorted(found)


def _trace_back(
    function: FlatFunction, producers: Mapping[int, int], off: Mapping[int, Difference], start: int
) -> Fault:
    """Follow a wrong value back to an op with correct operands."""
    number = start
    while number in producers:
        wrong = {n: off[n] for n in function.ops[producers[number]].operands if off[n].is_wrong}
        if not wrong:
            break
        number = _worst(wrong)
    return Fault(producers.get(number), number, off[number])

"""Execution traces: inner values of a function, on SPU and in float64 along SPU's decisions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mplang_spu.reference_check.decisions import decision_differences, is_decision
from mplang_spu.reference_check.flat_function import Op
from mplang_spu.reference_check.op_trace import OpTrace
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.roundings import Rounding, precision_of, roundings
from mplang_spu.reference_check.run import Run
from mplang_spu.reference_check.tolerance import Difference, compare


@dataclass(frozen=True, slots=True)
class Trace:
    """Differences of all values of a run.

    Attributes:
        differences: the difference of each value from float64, by number.
        decisions: the decisions, by the index of the op.
    """

    differences: Mapping[int, Difference]
    decisions: Mapping[int, OpTrace]


def trace(run: Run) -> Trace:
    """Run a function again, and compare each of its values with float64."""
    function, step = run.function, run.setting.step
    inner = [n for op in function.ops for n in op.results]
    found = run.on_spu([n for op in function.ops if not op.is_literal for n in op.results])
    decides = functools.partial(is_decision, kinds=function.kinds)
    taken = {n: found[n] for op in filter(decides, function.ops) for n in op.results}
    along = run.in_floats(inner, taken)  # results of all ops; uses of decisions read SPU's
    local = run.in_floats(inner, found)
    given = dict(enumerate(run.operands))
    followed, on_spu = given | along | taken, given | along | found
    ways = functools.cache(lambda: roundings(run, taken, along))
    off, decisions = dict.fromkeys(on_spu, Difference(0)), {}
    for i, op in enumerate(function.ops):
        if op.is_literal:
            continue
        case = OpTrace(
            op,
            [followed[n] for n in op.operands],
            [along[n] for n in op.results],
            [on_spu[n] for n in op.operands],
            [found[n] for n in op.results],
            [local[n] for n in op.results],
            step,
            max(map(precision_of, (function.kinds[n] for n in op.operands)), default=0.0),
            functools.partial(_rounded, op, ways),
        )
        if decides(op):
            decisions[i] = case
            off.update(zip(op.results, decision_differences(case), strict=True))
        else:
            off.update((n, compare(found[n], along[n], step)) for n in op.results)
    return Trace(off, decisions)


def _rounded(
    op: Op, ways: Callable[[], Sequence[Rounding]]
) -> list[tuple[list[Array], list[Array]]]:
    """Return operands and results of an op, rounded in other ways."""
    return [
        ([way.used[n] for n in op.operands], [way.made[n] for n in op.results]) for way in ways()
    ]

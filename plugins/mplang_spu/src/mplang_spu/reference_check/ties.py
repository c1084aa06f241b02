"""Ties: results that are correct for other decisions where float64 may decide either way.

SPU rounds at random, so a second run may decide differently from the first one, whose decisions are
unknown. The first result has to lie between float64 results with the operands of such decisions
perturbed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.decisions import is_apart, is_off_jump, nearest_jump, rounds
from mplang_spu.reference_check.op_trace import OpTrace, difference, larger
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.roundings import TIE
from mplang_spu.reference_check.run import Run
from mplang_spu.reference_check.tolerance import RELATIVE, STEPS
from mplang_spu.reference_check.trace import Trace

TRIES = 8
ASIDE = 2.0**-10  # steps that an operand is moved past a discontinuity


def explained_by_ties(run: Run, traced: Trace, found: Mapping[int, Array]) -> bool:
    """Return whether results are correct for some decisions that may go either way.

    Args:
        run: what SPU ran.
        traced: its inner values.
        found: the results that differ, by value number.

    Returns:
        Whether each element lies between results of perturbed runs.
    """
    function, step = run.function, run.setting.step
    moved = [
        (i, j)
        for i in traced.decisions
        for j, number in enumerate(function.ops[i].operands[: function.ops[i].arity])
        if function.kinds[number].dtype.numpy.kind == "f"
    ]
    shown = sorted(found)
    variant = function.perturbed(moved, shown)
    offsets = [_offset(traced.decisions[i], j) for i, j in moved]
    tries = [reference.run(variant, [*run.operands, *by]) for by in _perturbations(offsets)]
    return all(
        _is_between(found[n], [values[i] for values in tries], step) for i, n in enumerate(shown)
    )


def _offset(case: OpTrace, j: int) -> tuple[Array, Array]:
    """Return what moves an operand to a discontinuity, and from there to either side.

    Both are 0 where float64 decides one way only.
    """
    x = case.exact_in[j].astype(np.float64)
    sizes = larger(*case.exact_in[:2]) if case.op.name == "compare" else np.abs(x)
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    aside = ASIDE * case.step + 4 * TIE * sizes
    if case.op.name == "compare":
        is_free, there = ~is_apart(case) & (j == 0), case.exact_in[1]
    elif rounds(case.op):
        is_free, there = ~is_off_jump(case), nearest_jump(case)
    else:
        moves = [np.abs(difference(ins[j], x)) for ins, _ in case.roundings()]
        noise = np.max([np.zeros_like(x), *moves], axis=0)
        return np.zeros_like(x), noise + case.precision * sizes + aside
    return np.where(is_free, difference(there, x), 0.0), np.where(is_free, aside, 0.0)


def _perturbations(offsets: Sequence[tuple[Array, Array]]) -> Iterator[list[Array]]:
    """Yield the perturbation of each operand: none, to the tie, past it, then past it at random.

    In between, later elements are moved further than earlier ones, so that the last one of equal
    elements is the largest, and the other way around.
    """
    rng = np.random.default_rng(0)
    yield [np.zeros_like(towards) for towards, _ in offsets]
    for sign in (0, 1, -1):
        yield [towards + sign * aside for towards, aside in offsets]
    for sign in (1, -1):
        yield [towards + sign * _ramp(aside.shape) * aside for towards, aside in offsets]
    for _ in range(TRIES):
        yield [towards + rng.uniform(-1, 1, aside.shape) * aside for towards, aside in offsets]


def _ramp(shape: tuple[int, ...]) -> Array:
    return np.linspace(-1, 1, math.prod(shape)).reshape(shape)


def _is_between(found: Array, tries: Sequence[Array], step: float) -> bool:
    low, high = np.min(tries, axis=0), np.max(tries, axis=0)
    if low.dtype.kind != "f":
        return bool(np.all((low <= found) & (found <= high)))
    largest = float(np.max(np.abs(tries), initial=0))
    allowed = RELATIVE * largest + STEPS * step
    return bool(np.all((low - allowed <= found) & (found <= high + allowed)))

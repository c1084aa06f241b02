"""Ties: results that are correct for slightly perturbed operands of decisions.

SPU rounds at random, so a second run may decide differently from the first one, whose decisions are
unknown. The first result has to lie between float64 results with the operands of each decision
perturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mplang_core import TensorType
from mplang_spu.reference_check import reference
from mplang_spu.reference_check.decisions import NEAR, gap_of, is_decision
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.tolerance import RELATIVE, STEPS
from mplang_spu.reference_check.trace import Run, Trace

TRIES = 8


def explained_by_ties(run: Run, traced: Trace, found: Mapping[int, Array]) -> bool:
    """Return whether results are correct for some decisions about nearly equal numbers.

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
        for i, op in enumerate(function.ops)
        if is_decision(op, function.kinds)
        for j, number in enumerate(op.operands[: op.arity])
        if function.kinds[number].dtype.numpy.kind == "f"
    ]
    shown = sorted(found)
    variant = function.perturbed(moved, shown)
    kinds = variant.takes[function.inputs :]
    equal = [gap_of(traced.decisions[i], j) for i, j in moved]
    offsets = [equal, *_offsets(kinds, moved, step)]
    tries = [reference.run(variant, [*run.operands, *by]) for by in offsets]
    return all(
        _is_between(found[n], [values[i] for values in tries], step) for i, n in enumerate(shown)
    )


def _offsets(
    kinds: Sequence[TensorType], moved: Sequence[tuple[int, int]], step: float
) -> Iterator[list[Array]]:
    """Yield the perturbation of each operand: none, both directions, then random ones."""
    rng, size = np.random.default_rng(0), NEAR * step
    yield [np.zeros(kind.shape) for kind in kinds]
    for sign in (1, -1):
        sides = [sign if j % 2 else -sign for _, j in moved]
        yield [np.full(kind.shape, side * size) for kind, side in zip(kinds, sides, strict=True)]
    for _ in range(TRIES):
        yield [rng.choice([-size, size], kind.shape) for kind in kinds]


def _is_between(found: Array, tries: Sequence[Array], step: float) -> bool:
    low, high = np.min(tries, axis=0), np.max(tries, axis=0)
    if low.dtype.kind != "f":
        return bool(np.all((low <= found) & (found <= high)))
    largest = float(np.max(np.abs(tries), initial=0))
    allowed = RELATIVE * largest + STEPS * step
    return bool(np.all((low - allowed <= found) & (found <= high + allowed)))

"""Decisions: ops with discontinuities, such as comparisons, rounding and sorts.

If two numbers are nearly equal, SPU may decide differently from float64 and be correct; later ops
are judged by SPU's decision. A decision is wrong if no number near SPU's own operands supports it.
It is also wrong if an operand is integral up to rounding, or two operands are equal up to rounding,
and SPU decides as if not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mplang_core import TensorType
from mplang_spu.reference_check.flat_function import Op
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.tolerance import Difference, compare

NEAR = 8  # steps; numbers this close count as equal
WHOLE = 2.5e-7  # relative distance to an integer after two roundings to float32
TIE = 1e-12  # relative distance of numbers that are equal up to rounding in float64


@dataclass(frozen=True, slots=True)
class OpTrace:
    """Operands and results of one op, on SPU and in float64.

    Attributes:
        op: the op.
        exact_in: its operands in float64, following SPU's earlier decisions.
        exact: its results in float64 on ``exact_in``.
        found_in: its operands on SPU.
        found: its results on SPU.
        local: its results in float64 on ``found_in``.
        step: the smallest step.
    """

    op: Op
    exact_in: Sequence[Array]
    exact: Sequence[Array]
    found_in: Sequence[Array]
    found: Sequence[Array]
    local: Sequence[Array]
    step: float

    @property
    def band(self) -> float:
        """Distance up to which numbers count as equal."""
        return NEAR * self.step


def is_decision(op: Op, kinds: Sequence[TensorType]) -> bool:
    """Return whether an op is discontinuous: a small change of its operands may change its results.

    Ops on constants only are not: SPU has the same constants.

    Args:
        op: an op of the flat function.
        kinds: the types of all values.

    Returns:
        Whether it is a decision.
    """
    if op.label == "constant":
        return False
    takes_floats = any(kinds[number].dtype.numpy.kind == "f" for number in op.operands)
    gives_floats = any(kinds[number].dtype.numpy.kind == "f" for number in op.results)
    match op.name:
        case "compare" | "remainder" | "select_and_scatter":
            return takes_floats
        case "convert":
            return takes_floats and not gives_floats
        case "sort" | "reduce":
            return takes_floats and len(op.results) > 1
        case "custom_call":
            return op.label == "topk"
        case name:
            return takes_floats and (name in _ROUND or op.region_compares)


def decision_differences(case: OpTrace) -> list[Difference]:
    """Return the difference of each result of a decision."""
    agree = [compare(f, e, case.step) for f, e in zip(case.found, case.exact, strict=True)]
    if not any(each.is_wrong for each in agree):
        return agree
    with np.errstate(invalid="ignore", over="ignore"):  # compare reports NaN and infinity
        wrong = _WRONG.get(case.op.name, _default)(case)
    return [
        _first_difference(bad, found, exact)
        for bad, found, exact in zip(wrong, case.found, case.exact, strict=True)
    ]


# -- checks per op: each returns per result which elements are wrong


def _compare(case: OpTrace) -> list[Array]:
    left, right = case.exact_in
    (found,), (local,), (exact,) = case.found, case.local, case.exact
    apart, size = np.abs(left - right), np.maximum(np.abs(left), np.abs(right))
    wrong = (found != exact) & ~(_is_near(case) | (found == local))
    tied = apart <= TIE * size
    return [wrong | ((found != exact) & tied & (found != (case.op.direction in _OF_EQUALS)))]


def _is_near(case: OpTrace) -> Array:
    """Return which operands of a comparison SPU may take for equal."""
    left, right = case.exact_in
    apart, size = np.abs(left - right), np.maximum(np.abs(left), np.abs(right))
    slack = case.op.has_constant_operand * max(WHOLE, 16 * case.step) * size
    near: Array = apart <= case.band + slack
    return near


def gap_of(case: OpTrace, operand: int) -> Array:
    """Return the offset of an operand that makes nearly equal numbers equal.

    A literal that is no multiple of the smallest step is rounded to one, as is what it is compared
    with: SPU takes them for equal, float64 does not.

    Args:
        case: a decision.
        operand: the index of the operand.
    """
    if case.op.name != "compare" or operand > 0:
        return np.zeros_like(case.exact_in[operand], np.float64)
    left, right = case.exact_in
    with np.errstate(invalid="ignore"):
        return np.where(_is_near(case), right - left, 0.0)


def _round(case: OpTrace) -> list[Array]:
    (found,), (local,), (exact,) = case.found, case.local, case.exact
    jump, distance = _jump(case)
    whole = distance <= WHOLE * np.maximum(1.0, np.abs(case.exact_in[0]))
    tie = case.op.name.startswith("round") or case.op.name == "sign"
    differs = np.abs(found - exact.astype(np.float64)) > case.band
    right = (np.abs(found - local.astype(np.float64)) <= case.band) | (
        (distance <= case.band) & (np.abs(found - jump) <= 1 + case.band)
    )
    return [differs & (~right | (whole & (not tie)))]


def _jump(case: OpTrace) -> tuple[Array, Array]:
    """Return the nearest discontinuity of the op, and its distance."""
    x = case.exact_in[0]
    if case.op.name == "sign" or case.exact[0].dtype.kind == "b":
        jump = np.zeros_like(x)
    elif case.op.name.startswith("round"):
        jump = np.floor(x) + 0.5
    else:
        jump = np.rint(x)
    return jump, np.abs(x - jump)


def _remainder(case: OpTrace) -> list[Array]:
    divisor = np.abs(case.exact_in[1])
    (found,), (local,), (exact,) = case.found, case.local, case.exact
    whole = np.minimum(np.abs(exact), divisor - np.abs(exact)) <= WHOLE * divisor
    differs = np.abs(found - exact) > case.band + 1e-3 * divisor
    right = np.abs(found - local) <= case.band + 1e-3 * divisor
    return [differs & (whole | ~right)]


def _sort(case: OpTrace) -> list[Array]:
    """Check that rows are permuted as a whole, and that their first keys are in order."""
    (along,) = case.op.dimensions
    given, found = _rows(case.found_in, along), _rows(case.found, along)
    same = np.all(given == found, axis=(0, 2))
    key, sorted_key = (_column(each[0], along) for each in (case.found, case.local))
    right = same & np.all(np.abs(key - sorted_key) <= case.band, axis=-1)
    shape = _column(case.found[0], along).shape
    wrong = np.broadcast_to(~right.reshape(-1, 1), (right.size, shape[-1])).reshape(shape)
    return [np.moveaxis(wrong, -1, along)] * len(case.found)


def _rows(values: Sequence[Array], along: int) -> Array:
    """Return an array of columns × lanes × elements, each lane in lexicographic order."""
    columns = [_column(each, along).astype(np.float64) for each in values]
    table = np.stack([each.reshape(-1, each.shape[-1]) for each in columns])
    order = np.stack([np.lexsort(table[:, lane, :]) for lane in range(table.shape[1])])
    return np.take_along_axis(table, order[None], axis=2)


def _column(value: Array, along: int) -> Array:
    return np.moveaxis(value, along, -1)


def _arg_extreme(case: OpTrace) -> list[Array]:
    """Check that the element at an index is as extreme as the best one."""
    if len(case.found) != 2 or case.found[1].dtype.kind not in "iu":
        return _default(case)
    keys, places = (_lanes(each, case.op.dimensions) for each in case.found_in[:2])
    best, at = case.local[0].reshape(-1, 1), case.found[1].reshape(-1, 1)
    right = np.any((places == at) & (np.abs(keys - best) <= case.band), axis=1)
    return [~right.reshape(each.shape) for each in case.found]


def _lanes(value: Array, dimensions: Sequence[int]) -> Array:
    moved = np.moveaxis(value, dimensions, range(-len(dimensions), 0))
    kept = value.ndim - len(dimensions)
    return moved.reshape(int(np.prod(moved.shape[:kept])), -1)


def _default(case: OpTrace) -> list[Array]:
    """Check that float64 gives the same results on SPU's operands."""
    pairs = zip(case.found, case.local, strict=True)
    return [
        np.full(found.shape, compare(found, local, case.step).is_wrong) for found, local in pairs
    ]


def _first_difference(wrong: Array, found: Array, exact: Array) -> Difference:
    """Return the first wrong element."""
    if not np.any(wrong):
        return Difference(0)
    differs = wrong & (found != exact)
    picked = differs if np.any(differs) else wrong
    at = tuple(map(int, np.unravel_index(int(picked.argmax()), picked.shape)))
    number = float if exact.dtype.kind == "f" else int
    return Difference(np.inf, at, number(found[at]), number(exact[at]))


_OF_EQUALS = ("EQ", "GE", "LE")
"""Comparisons that are true of equal numbers."""

_ROUND = ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "sign")

_WRONG: Mapping[str, Callable[[OpTrace], list[Array]]] = {
    **dict.fromkeys((*_ROUND, "convert"), _round),
    "compare": _compare,
    "remainder": _remainder,
    "sort": _sort,
    "reduce": _arg_extreme,
}

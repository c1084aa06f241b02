"""Decisions: ops with discontinuities, such as comparisons, rounding and sorts.

If float64 may decide either way, since it depends on how data and ops are rounded, so may SPU, and
later ops are judged by SPU's decision. Otherwise a decision is wrong if it is not that of float64,
however close the numbers are: SPU takes numbers that are some steps apart for equal. It is also
wrong if an operand is integral up to rounding, or two operands are equal up to rounding, and SPU
decides as if not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mplang_core import TensorType
from mplang_spu.reference_check.flat_function import Op
from mplang_spu.reference_check.op_trace import OpTrace, OpVerdict, difference, larger
from mplang_spu.reference_check.orders import check_extreme, check_largest, check_sort
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.roundings import TIE, WHOLE
from mplang_spu.reference_check.tolerance import Difference, compare, is_off


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
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # compare reports NaN
        verdicts = _check_of(case)(case)
    return [
        _first_difference(verdict, actual, exact)
        for verdict, actual, exact in zip(verdicts, case.found, case.exact, strict=True)
    ]


def _check_of(case: OpTrace) -> Callable[[OpTrace], list[OpVerdict]]:
    is_place = len(case.found) == 2 and case.found[1].dtype.kind in "iu"
    if case.op.name == "reduce" and not is_place:
        return _check
    return _CHECKS.get("topk" if case.op.label == "topk" else case.op.name, _check)


# -- checks per op


def _compare(case: OpTrace) -> list[OpVerdict]:
    left, right = case.exact_in
    (actual,), (exact,) = case.found, case.exact
    is_tie = np.abs(left - right) <= TIE * larger(left, right)
    is_missed = is_tie & (actual != (case.op.direction in _OF_EQUALS))
    return [OpVerdict((actual != exact) & (is_missed | is_apart(case)), (left, right))]


def is_apart(case: OpTrace) -> Array:
    """Return which operands of a comparison differ in whatever way they are rounded.

    Args:
        case: a comparison.
    """
    return case.is_apart(lambda ins, _: difference(ins[0], ins[1]), larger(*case.exact_in))


def _round(case: OpTrace) -> list[OpVerdict]:
    (actual,), (exact,), x = case.found, case.exact, case.exact_in[0]
    jump = nearest_jump(case)
    is_whole = np.abs(x - jump) <= WHOLE * np.maximum(1.0, np.abs(x))
    may_be_half = case.op.name.startswith("round") or case.op.name == "sign"
    differs = np.abs(actual - exact.astype(np.float64)) > case.band
    off = np.abs(actual - jump)
    is_missed = is_whole & (not may_be_half) & (off > case.band)
    wrong = differs & (is_off_jump(case) | is_missed | (off > 1 + case.band))
    return [OpVerdict(wrong, (x, jump))]


def is_off_jump(case: OpTrace) -> Array:
    """Return which operands are off a discontinuity in whatever way they are rounded.

    Args:
        case: an op that rounds.
    """
    jump = nearest_jump(case)
    return case.is_apart(lambda ins, _: difference(ins[0], jump), np.abs(case.exact_in[0]))


def rounds(op: Op) -> bool:
    """Return whether an op gives a whole number near its operand.

    Args:
        op: a decision.
    """
    return _CHECKS.get(op.name) is _round


def nearest_jump(case: OpTrace) -> Array:
    """Return the discontinuity that is nearest to the operand of an op that rounds.

    Args:
        case: the op.
    """
    x = case.exact_in[0]
    if case.op.name == "sign" or case.exact[0].dtype.kind == "b":
        return np.zeros_like(x)
    return np.asarray(np.floor(x) + 0.5 if case.op.name.startswith("round") else np.rint(x))


def _remainder(case: OpTrace) -> list[OpVerdict]:
    (actual,), (exact,), divisor = case.found, case.exact, np.abs(case.exact_in[1])
    allowed = case.band + 1e-3 * divisor
    is_whole = np.minimum(np.abs(exact), divisor - np.abs(exact)) <= WHOLE * divisor
    apart = actual - exact
    is_far = np.abs(apart - divisor * np.rint(apart / divisor)) > allowed
    is_clear = case.is_apart(_past_multiple, np.abs(case.exact_in[0]))
    return [OpVerdict((np.abs(apart) > allowed) & (is_whole | is_clear | is_far))]


def _past_multiple(ins: Sequence[Array], outs: Sequence[Array]) -> Array:
    """Return how far a dividend is off the nearest multiple of its divisor."""
    (rest,), divisor = outs, np.abs(ins[1])
    return np.asarray(rest - divisor * np.rint(rest / divisor))


def _check(case: OpTrace) -> list[OpVerdict]:
    """Check that float64 gives the same on SPU's operands, and on its own if that is settled."""
    ways = [outs for _, outs in case.roundings()]
    verdicts = []
    for i, (actual, exact, local) in enumerate(
        zip(case.found, case.exact, case.local, strict=True)
    ):
        is_settled = ~np.any(
            [is_off(outs[i], exact, case.step) for outs in ways] or [np.zeros(exact.shape, bool)],
            axis=0,
        )
        is_bad = compare(actual, local, case.step).is_wrong
        verdicts.append(OpVerdict(is_bad | (is_off(actual, exact, case.step) & is_settled)))
    return verdicts


def _first_difference(verdict: OpVerdict, actual: Array, exact: Array) -> Difference:
    """Return the first wrong element."""
    wrong = np.broadcast_to(verdict.wrong, actual.shape)
    if not np.any(wrong):
        return Difference(0)
    differs = wrong & (actual != exact)
    picked = differs if np.any(differs) else wrong
    at = tuple(map(int, np.unravel_index(int(picked.argmax()), picked.shape)))
    number = float if exact.dtype.kind == "f" else int
    pair = verdict.pair and (float(verdict.pair[0][at]), float(verdict.pair[1][at]))
    return Difference(np.inf, at, number(actual[at]), number(exact[at]), pair=pair)


_OF_EQUALS = ("EQ", "GE", "LE")
"""Comparisons that are true of equal numbers."""

_ROUND = ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "sign")

_CHECKS: Mapping[str, Callable[[OpTrace], list[OpVerdict]]] = {
    **dict.fromkeys((*_ROUND, "convert"), _round),
    "compare": _compare,
    "reduce": check_extreme,
    "remainder": _remainder,
    "sort": check_sort,
    "topk": check_largest,
}

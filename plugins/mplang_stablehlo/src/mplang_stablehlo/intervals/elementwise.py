"""Exact interval rules for elementwise ops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from mplang_analysis import UNKNOWN, Interval, hull

from mplang_stablehlo.intervals import arithmetic as exact
from mplang_stablehlo.intervals.element_types import ElementType

Unary: TypeAlias = Callable[[ElementType, Interval], Interval]
Binary: TypeAlias = Callable[[ElementType, Interval, Interval], Interval]

BOOL = Interval(0, 1)


# -- one operand


def _of(fn: Callable[[Interval], Interval]) -> Unary:
    return lambda kind, x: fn(x)


def _increasing(fn: Callable[[float], float]) -> Unary:
    return _of(exact.monotone(fn))


def _abs(kind: ElementType, x: Interval) -> Interval:
    return Interval(x.smallest, x.largest)


def _negate(kind: ElementType, x: Interval) -> Interval:
    return Interval(-x.high, -x.low)


def _sign(kind: ElementType, x: Interval) -> Interval:
    return Interval((x.low > 0) - (x.low < 0), (x.high > 0) - (x.high < 0))


def _rsqrt(kind: ElementType, x: Interval) -> Interval:
    return exact.divide(Interval(1, 1), exact.monotone(math.sqrt)(x)) if x.low > 0 else UNKNOWN


def _tan(kind: ElementType, x: Interval) -> Interval:
    return exact.monotone(math.tan)(x) if x.largest < math.pi / 2 else UNKNOWN


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))


def _cosh(kind: ElementType, x: Interval) -> Interval:
    return exact.monotone(math.cosh)(Interval(x.smallest, x.largest))


def _acos(kind: ElementType, x: Interval) -> Interval:
    return _negate(kind, exact.monotone(lambda at: -math.acos(at))(x))


def _not(kind: ElementType, x: Interval) -> Interval:
    if kind.limits.low == 0:
        return Interval(kind.limits.high - x.high, kind.limits.high - x.low)
    return Interval(-1 - x.high, -1 - x.low)


def _round_even(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


def _round_away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) else x


def _whole(fn: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: fn(x) if math.isfinite(x) else x


UNARY: Mapping[str, Unary] = {
    "abs": _abs,
    "cbrt": _increasing(math.cbrt),
    "ceil": _increasing(_whole(math.ceil)),
    "cosine": lambda kind, x: Interval(-1, 1),
    "count_leading_zeros": lambda kind, x: Interval(0, kind.bits),
    "exponential": _increasing(math.exp),
    "exponential_minus_one": _increasing(math.expm1),
    "floor": _increasing(_whole(math.floor)),
    "log": _increasing(math.log),
    "log_plus_one": _increasing(math.log1p),
    "logistic": _increasing(_logistic),
    "negate": _negate,
    "not": _not,
    "popcnt": lambda kind, x: Interval(0, kind.bits),
    "round_nearest_afz": _increasing(_round_away),
    "round_nearest_even": _increasing(_round_even),
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": lambda kind, x: Interval(-1, 1),
    "sqrt": _increasing(math.sqrt),
    "tan": _tan,
    "tanh": _increasing(math.tanh),
    "mhlo.acos": _acos,
    "mhlo.acosh": _increasing(math.acosh),
    "mhlo.asin": _increasing(math.asin),
    "mhlo.asinh": _increasing(math.asinh),
    "mhlo.atanh": _increasing(math.atanh),
    "mhlo.cosh": _cosh,
    "mhlo.erf": _increasing(math.erf),
    "mhlo.sinh": _increasing(math.sinh),
}
"""Rules for ops with one operand."""


# -- two operands


def _both(fn: Callable[[Interval, Interval], Interval]) -> Binary:
    return lambda kind, x, y: fn(x, y)


def _maximum(kind: ElementType, x: Interval, y: Interval) -> Interval:
    return Interval(max(x.low, y.low), max(x.high, y.high))


def _minimum(kind: ElementType, x: Interval, y: Interval) -> Interval:
    return Interval(min(x.low, y.low), min(x.high, y.high))


def _divide(kind: ElementType, x: Interval, y: Interval) -> Interval:
    return exact.divide(x, y) if kind.is_float else integer_divide(x, y)


def integer_divide(x: Interval, y: Interval) -> Interval:
    """Return the interval of integer quotients, rounded towards zero; exact for any size.

    Args:
        x: the dividend.
        y: the divisor.

    Returns:
        The quotients; unknown if the divisor may be 0.

    Example:
        >>> integer_divide(Interval(-7, 7), Interval(2, 3))
        Interval(low=-3, high=3)
    """
    if not (x.known and y.known) or y.low <= 0 <= y.high:
        return UNKNOWN
    corners = itertools.product((int(x.low), int(x.high)), (int(y.low), int(y.high)))
    return hull((abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in corners)


def _remainder(kind: ElementType, x: Interval, y: Interval) -> Interval:
    return exact.remainder(x, y)


def _power(kind: ElementType, x: Interval, y: Interval) -> Interval:
    found = exact.power(x, y)
    exactly = kind.is_float or found.largest < 2**53  # computed in float64
    return found if exactly else UNKNOWN


def _and(kind: ElementType, x: Interval, y: Interval) -> Interval:
    bounds = [side.high for side in (x, y) if side.low >= 0]
    return (
        Interval(min(x.low, y.low) if kind.name == "i1" else 0, min(bounds)) if bounds else UNKNOWN
    )


def _or(kind: ElementType, x: Interval, y: Interval) -> Interval:
    if x.low < 0 or y.low < 0 or not (x.known and y.known):
        return UNKNOWN
    return Interval(max(x.low, y.low), _ones(x, y))


def _xor(kind: ElementType, x: Interval, y: Interval) -> Interval:
    if x.low < 0 or y.low < 0 or not (x.known and y.known):
        return UNKNOWN
    if kind.name == "i1" and x.low == x.high and y.low == y.high:
        return hull([x.low != y.low])
    return Interval(0, _ones(x, y))


def _ones(x: Interval, y: Interval) -> int:
    """Return the largest number with no more bits than either operand."""
    return int((1 << int(max(x.high, y.high)).bit_length()) - 1)


def _shift_left(kind: ElementType, x: Interval, y: Interval) -> Interval:
    if y.low < 0 or y.high >= kind.bits:
        return UNKNOWN
    return exact.multiply(x, Interval(1 << int(y.low), 1 << int(y.high)))


def _shift_right(kind: ElementType, x: Interval, y: Interval) -> Interval:
    if y.low < 0 or y.high >= kind.bits or not x.known:
        return UNKNOWN
    return hull(int(a) >> int(b) for a in (x.low, x.high) for b in (y.low, y.high))


def _shift_right_logical(kind: ElementType, x: Interval, y: Interval) -> Interval:
    return _shift_right(kind, x, y) if x.low >= 0 else UNKNOWN


BINARY: Mapping[str, Binary] = {
    "add": lambda kind, x, y: exact.add(x, y) if kind.name != "i1" else _or(kind, x, y),
    "and": _and,
    "atan2": lambda kind, x, y: Interval(-math.pi, math.pi),
    "divide": _divide,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply": _both(exact.multiply),
    "or": _or,
    "power": _power,
    "remainder": _remainder,
    "shift_left": _shift_left,
    "shift_right_arithmetic": _shift_right,
    "shift_right_logical": _shift_right_logical,
    "subtract": _both(exact.subtract),
    "xor": _xor,
}
"""Rules for ops with two operands."""

_EXACT = "abs ceil floor maximum minimum negate round_nearest_afz round_nearest_even sign"

EXACT = frozenset(_EXACT.split())
"""Ops whose result is exact in floating and fixed point; infinities pass through them."""


# -- others


def clamp(low: Interval, x: Interval, high: Interval) -> Interval:
    """Return the interval of ``x`` clamped to bounds.

    Args:
        low: the lower bound.
        x: the numbers.
        high: the upper bound.

    Returns:
        The results.
    """
    kind = ElementType("f64")  # maximum and minimum do not depend on it
    return _minimum(kind, _maximum(kind, x, low), high)


def convert(source: ElementType, target: ElementType, x: Interval) -> Interval:
    """Return the interval of a conversion.

    XLA converts floats to integers by truncation; SPU rounds some negative ones down.

    Args:
        source: the element type of the operand.
        target: the element type of the result.
        x: the numbers.

    Returns:
        The results, before wrapping of integers.

    Example:
        >>> convert(ElementType("f32"), ElementType("i32"), Interval(-1.5, 1.5))
        Interval(low=-2, high=1)
        >>> convert(ElementType("i32"), ElementType("i1"), Interval(1, 7))
        Interval(low=1, high=1)
    """
    if target.name == "i1":
        zero, nonzero = 0 in x, x.low != 0 or x.high != 0
        return Interval(int(not zero), int(nonzero))
    if source.is_float and target.is_integer:
        if not x.known:
            return UNKNOWN
        return Interval(math.floor(x.low), math.trunc(x.high))
    return x

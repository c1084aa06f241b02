"""Interval arithmetic: exact operations on real numbers, without rounding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from mplang_analysis import UNKNOWN, Interval, hull


def add(x: Interval, y: Interval) -> Interval:
    """Return the interval of ``x + y``.

    Args:
        x: the first summand.
        y: the second summand.

    Returns:
        The sums.
    """
    return _ends(x.low + y.low, x.high + y.high)


def subtract(x: Interval, y: Interval) -> Interval:
    """Return the interval of ``x - y``.

    Args:
        x: the minuend.
        y: the subtrahend.

    Returns:
        The differences.
    """
    return _ends(x.low - y.high, x.high - y.low)


def multiply(x: Interval, y: Interval) -> Interval:
    """Return the interval of ``x * y``.

    Args:
        x: the first factor.
        y: the second factor.

    Returns:
        The products.

    Example:
        >>> multiply(Interval(-1, 2), Interval(3, 4))
        Interval(low=-4, high=8)
    """
    return hull(a * b for a, b in itertools.product((x.low, x.high), (y.low, y.high)))


def square(x: Interval) -> Interval:
    """Return the interval of ``x * x``, of one number with itself.

    Example:
        >>> square(Interval(-3, 2))
        Interval(low=0.0, high=9)
    """
    return _ends(x.smallest * x.smallest, x.largest * x.largest)


def times(x: Interval, n: int) -> Interval:
    """Return the interval of the sum of ``n`` numbers.

    Args:
        x: the interval of each number.
        n: the number of summands.

    Returns:
        The sums.
    """
    return multiply(x, Interval(n, n)) if n else Interval(0, 0)


def divide(x: Interval, y: Interval) -> Interval:
    """Return the interval of ``x / y``.

    Args:
        x: the dividend.
        y: the divisor.

    Returns:
        The quotients; unknown if the divisor may be 0.

    Example:
        >>> divide(Interval(1, 2), Interval(-4, -2)), divide(Interval(1, 2), Interval(0, 1)).open
        (Interval(low=-1.0, high=-0.25), True)
    """
    if y.low <= 0 <= y.high or not y.known:
        return UNKNOWN
    return hull(_over(a, b) for a, b in itertools.product((x.low, x.high), (y.low, y.high)))


def _over(a: float, b: float) -> float:
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


def remainder(x: Interval, y: Interval) -> Interval:
    """Return the interval of the remainder of ``x / y``, with the sign of the dividend.

    Args:
        x: the dividend.
        y: the divisor.

    Returns:
        The remainders; unknown if the divisor may be 0.

    Example:
        >>> remainder(Interval(-10, 3), Interval(4, 4))
        Interval(low=-4, high=3)
    """
    if y.low <= 0 <= y.high or x.open:
        return UNKNOWN
    low, high = max(x.low, -y.largest), min(x.high, y.largest)
    return Interval(min(low, 0), max(high, 0))


def power(x: Interval, y: Interval) -> Interval:
    """Return the interval of ``x ** y``.

    Args:
        x: the base.
        y: the exponent.

    Returns:
        The powers; unknown if a root of a negative number may be taken.
    """
    if x.low > 0 or (x.low == 0 and y.low >= 0):
        return hull(_pow(a, b) for a, b in itertools.product((x.low, x.high), (y.low, y.high)))
    if y.low != y.high or y.low != math.floor(y.low) or not y.known:
        return UNKNOWN
    return _whole_power(x, y.low)


def _whole_power(x: Interval, n: float) -> Interval:
    if n < 0:
        return divide(Interval(1, 1), _whole_power(x, -n))
    if n % 2:
        return hull([_pow(x.low, n), _pow(x.high, n)])
    return hull([_pow(x.smallest, n), _pow(x.largest, n)])


def _pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf if a > 0 or b % 2 == 0 else -math.inf
    except ValueError:
        return math.nan


def monotone(fn: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """Lift an increasing function to intervals; unknown outside of its domain.

    Example:
        >>> monotone(math.sqrt)(Interval(4, 9)), monotone(math.log)(Interval(0, 1)).open
        (Interval(low=2.0, high=3.0), True)
    """

    def at(x: float) -> float:
        try:
            return fn(x)
        except OverflowError:
            return math.inf if x > 0 else -math.inf

    def of(x: Interval) -> Interval:
        try:
            return hull([at(x.low), at(x.high)])
        except ValueError:
            return UNKNOWN

    return of


def _ends(low: float, high: float) -> Interval:
    return UNKNOWN if math.isnan(low) or math.isnan(high) else Interval(low, high)

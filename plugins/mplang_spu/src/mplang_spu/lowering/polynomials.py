"""Exponential, logistic function and reciprocal by products alone. Imports JAX.

libspu's own functions take numbers apart bit by bit, which on CHEETAH costs as much as forty to
ninety products. These take eight to twenty, and have smaller errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from jaxlib.mlir import ir

from mplang_spu.lowering.term import Term, where

MANY_BITS = 30
"""Fraction bits above which squaring a number seven times keeps enough of them."""
PRECISE = 2.0**-23
"""Relative error at which Newton's method ends: that of float32."""

_TAYLOR = [1 / math.factorial(i) for i in range(7)]
_CHEBYSHEV = (0, 5, 0, -20, 0, 16)  # of degree 5, the lowest power first


def is_wide(x: Term) -> bool:
    """Return whether a float is of 32 bits or more: libspu converts none to float16."""
    return bool(x.kind.element_type.width >= 32)


def widely(x: Term, function: Callable[[Term], Term]) -> Term:
    """Compute a function in float64, whose literals are exact to the fixed point.

    A share is the same in each type of float. FM32 has no float64, and too few bits for these.

    Args:
        x: a float for which :func:`is_wide` holds.
        function: takes and returns a float64.

    Returns:
        The result, of the type of ``x``.
    """
    return function(x.to(ir.F64Type.get())).to(x.kind.element_type)


def decay(size: Term, fxp: int) -> Term:
    """Return ``exp(-size)``, by Taylor's polynomial of ``exp(-size / n)`` to the power n.

    With 40 fraction bits n is 32, the error below 2e-9, and below 5e-4 of the result up to 22; with
    fewer bits, whose rounding n multiplies, n is 8, and the error below 2e-6 before rounding.

    Args:
        size: zero or more.
        fxp: the fraction bits.
    """
    return bounded_decay(_at_most(size, _end(fxp)), fxp)


def bounded_decay(size: Term, fxp: int) -> Term:
    """Return :func:`decay` of numbers that are no more than 28."""
    squares = 5 if fxp > MANY_BITS else 3
    return _power(size * -(0.5**squares), squares)


def exponential(x: Term, fxp: int) -> Term:
    """Return ``exp(x)`` of numbers of either sign, with a relative error below 2e-6 up to 32.

    Args:
        x: any number.
        fxp: the fraction bits; more than :data:`MANY_BITS`.
    """
    low = -_end(fxp)
    return _power(where(x < low, low, x) * 0.5**7, 7)


def logistic(x: Term, fxp: int) -> Term:
    """Return ``1 / (1 + e)`` with ``e = exp(-|x|)``, and ``e / (1 + e)`` of negative numbers.

    The error is below 2e-7 of the result, and of small results that of :func:`decay`.
    """
    negative = x < 0.0
    power = decay(where(negative, -x, x), fxp)
    inverse = newton(power + 1, 1, 2)
    return inverse * where(negative, power, power.like(1.0))


def tanh(x: Term, fxp: int) -> Term:
    """Return ``2 / (1 + exp(-2|x|)) - 1`` with the sign of ``x``, with an error below 4e-7."""
    negative = x < 0.0
    size = _at_most(where(negative, -x, x), _end(fxp) / 2)  # before it is doubled
    result = newton(bounded_decay(size * 2.0, fxp) + 1, 1, 2) * 2.0 - 1
    return where(negative, -result, result)


def _end(fxp: int) -> float:
    """Return where ``exp(-x)`` is the smallest step."""
    return fxp * math.log(2)


def _at_most(x: Term, high: float) -> Term:
    return where(x > high, high, x)


def newton(x: Term, low: float, high: float, precise: float = PRECISE) -> Term:
    """Return the reciprocal of numbers within bounds, by Newton's method.

    It starts from the polynomial of degree 4 whose largest relative error is least, see
    :func:`start_of_newton`.

    Args:
        x: a positive float.
        low: what it is at least.
        high: what it is at most, about 1.
        precise: the relative error at which it ends.
    """
    factors, error = start_of_newton(low, high)
    square = x * x
    result = _sum(factors[:2], x) + square * (_sum(factors[2:4], x) + square * factors[4])
    while error > precise:
        result = result * (2 - x * result)
        error *= error
    return result


def start_of_newton(low: float, high: float) -> tuple[Sequence[float], float]:
    """Return the polynomial of degree 4 nearest to the reciprocal, and its relative error.

    It is ``(1 - T(u) / T(u0)) / x``, where T is Chebyshev's polynomial of degree 5, u leads from
    the bounds to [-1, 1], and u0 is u at 0. Rational numbers make it the same at all parties.

    Args:
        low: what x is at least, more than 0.
        high: what it is at most.

    Returns:
        The coefficients, the lowest power first, and the largest relative error.

    Example:
        >>> factors, error = start_of_newton(1, 2)
        >>> [round(factor, 3) for factor in factors], round(1 / error)
        ([3.536, -4.924, 3.378, -1.142, 0.152], 3363)
    """
    a, b = Fraction(low), Fraction(high)
    slope, shift, zero = 2 / (b - a), -(a + b) / (b - a), Fraction(0)
    powers, total = [Fraction(1)], [zero] * 6
    for factor in _CHEBYSHEV:
        total = [x + factor * y for x, y in zip(total, powers + [zero] * 6, strict=False)]
        powers = [
            shift * x + slope * y for x, y in zip([*powers, zero], [zero, *powers], strict=True)
        ]
    return [float(-each / total[0]) for each in total[1:]], float(1 / abs(total[0]))


def _power(t: Term, squares: int) -> Term:
    """Return Taylor's polynomial of ``exp(t)``, squared so many times."""
    square = t * t
    cube = square * t
    high = _sum(_TAYLOR[3:6], t, square) + cube * _TAYLOR[6]
    result = _sum(_TAYLOR[:3], t, square) + cube * high
    for _ in range(squares):
        result = result * result
    return result


def _sum(factors: Sequence[float], *powers: Term) -> Term:
    """Return the first factor, and the others times a power each."""
    result = powers[0] * factors[1]
    for factor, power in zip(factors[2:], powers[1:], strict=True):
        result = result + power * factor
    return result + factors[0]

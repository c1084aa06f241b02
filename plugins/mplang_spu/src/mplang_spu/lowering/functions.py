"""Passes that extend the range and accuracy of elementary functions. Imports JAX.

Formulas: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapters 4 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.ext import target_of

from mplang_spu.lowering import polynomials
from mplang_spu.lowering.polynomials import widely
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.signs import never_positive
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, made_by, replace, where

MAX_POWER = 1024
"""Largest integer exponent that is expanded to products."""


def find_logistic(rewriter: Rewriter) -> None:
    """Rewrite ``1 / (1 + exp(-x))``, as JAX writes it, to the logistic function.

    The logistic function is correct where ``exp`` overflows, and needs no scaling as quotients do.
    """
    for op in rewriter.ops("divide"):
        total = made_by(op.operands[1], "add")
        if splat_of(op.operands[0]) != 1 or total is None:
            continue
        for one, other in (tuple(total.operands), tuple(total.operands)[::-1]):
            power = made_by(other, "exponential")
            negated = None if power is None else made_by(power.operands[0], "negate")
            if splat_of(one) == 1 and negated is not None:
                with rewriter.before(op):
                    replace(op, Term(hlo.logistic(negated.operands[0])))
                break


def write_functions(rewriter: Rewriter) -> None:
    """Rewrite functions that libspu approximates coarsely, or lacks, to others.

    The error of its ``tanh`` is 4e-3, of ``erf`` 5e-4, both in all fields; ``exp`` saturates at
    2^32 even in larger fields; near zero ``expm1`` loses all digits of small numbers.
    """
    for op in rewriter.ops("power"):
        exponent = splat_of(op.operands[1])
        if exponent is not None and is_float(op.results[0]):
            with rewriter.before(op):
                replace(op, _power(rewriter, Term(op.operands[0]), float(exponent)))
    for op in rewriter.ops(*_FUNCTIONS, "custom_call"):
        target = target_of(op)
        write = _CALLS.get(target) if target else _FUNCTIONS[op.name.removeprefix("stablehlo.")]
        if write is not None:
            with rewriter.before(op):
                replace(op, write(rewriter, Term(op.operands[0])))


def write_roots(rewriter: Rewriter) -> None:
    """Scale large operands of ``sqrt``, ``rsqrt`` and ``log`` down by a power of two.

    libspu's functions are 0 or constant from about ``2^f`` on, for f fraction bits.
    """
    power = max((rewriter.target.fxp - 2) // 2 * 2, 2)
    half = 2.0 ** (power // 2)
    for op in rewriter.ops("sqrt", "rsqrt", "log"):
        with rewriter.before(op):
            x = Term(op.operands[0])
            large = x > 2.0**power
            y = where(large, rewriter.scaled(x, 2.0**-power), x)
            if op.name == "stablehlo.log":
                found = Term(hlo.log(y.value))
                replace(op, found + where(large, power * math.log(2), x.like(0)))
            elif op.name == "stablehlo.sqrt":
                found = Term(hlo.sqrt(y.value))
                replace(op, where(large, found * half, found))
            else:
                found = Term(hlo.rsqrt(y.value))
                replace(op, where(large, rewriter.scaled(found, 1 / half), found))


def _exp(x: Term) -> Term:
    return Term(hlo.exponential(x.value))


def _log(x: Term) -> Term:
    return Term(hlo.log(x.value))


def _sqrt(x: Term) -> Term:
    return Term(hlo.sqrt(x.value))


def _exponential(rewriter: Rewriter, x: Term) -> Term:
    """Return products where they reach as far as a field; else ``exp(x/2)²``, or libspu's ``exp``.

    That ends at 2^32, but larger fields hold more.
    """
    wide, small = rewriter.target.factors > 2.0**32, never_positive(x.value)
    if small:
        return _decay(rewriter, -x)
    if not wide:
        return _exp(x)
    if _takes_products(rewriter, x) and rewriter.target.fxp > polynomials.MANY_BITS:
        return _by_products(rewriter, x, polynomials.exponential)
    root = rewriter.barrier(_exp(rewriter.scaled(x.at_least(-64), 0.5)))
    return root * root


def _decay(rewriter: Rewriter, size: Term) -> Term:
    """Return ``exp(-size)`` of numbers that are zero or more."""
    if _takes_products(rewriter, size):
        return _by_products(rewriter, size, polynomials.decay)
    return _exp(-size)


def _takes_products(rewriter: Rewriter, x: Term) -> bool:
    return rewriter.target.exp_by_products and polynomials.is_wide(x)


def _by_products(rewriter: Rewriter, x: Term, function: Callable[[Term, int], Term]) -> Term:
    return widely(x, lambda wide: function(wide, rewriter.target.fxp))


def _logistic(rewriter: Rewriter, x: Term) -> Term:
    if rewriter.target.logistic_by_products and polynomials.is_wide(x):
        return _by_products(rewriter, x, polynomials.logistic)
    return Term(hlo.logistic(x.value))


def _power(rewriter: Rewriter, x: Term, exponent: float) -> Term:
    """Return products for a small integer exponent; else ``exp(y log x)``, for positive numbers."""
    if not exponent.is_integer() or abs(exponent) > MAX_POWER:
        return _exponential(rewriter, rewriter.scaled(_log(x), exponent))
    found, square = x.like(1), x
    for bit in f"{int(abs(exponent)):b}"[::-1]:
        found = found * square if bit == "1" else found
        square = square * square
    return 1 / found if exponent < 0 else found


def _expm1(rewriter: Rewriter, x: Term) -> Term:
    """Return the first terms of the series near zero, ``exp(x) - 1`` elsewhere."""
    series = _polynomial(x, [1 / math.factorial(i) for i in range(1, 8)]) * x
    return where(x.magnitude() < 0.25, series, _exponential(rewriter, x) - 1)


def _log1p(rewriter: Rewriter, x: Term) -> Term:
    return _log(x + 1)


def _tanh(rewriter: Rewriter, x: Term) -> Term:
    """Return products; else ``(e-1)/(e+1)``, ``e = exp(2|x|)``; 1 from 9 on or if it overflows."""
    if _takes_products(rewriter, x):
        return _by_products(rewriter, x, polynomials.tanh)
    largest = min(9.0, (rewriter.target.fxp - 3) * math.log(2) / 2)

    def positive(size: Term) -> Term:
        e = _exp(size.clamp(0, largest) * 2.0)
        return (e - 1) / (e + 1)

    return _odd(x, positive)


def _erf(rewriter: Rewriter, x: Term) -> Term:
    """Return formula 7.1.26, with an error of at most 1.5e-7; it is 1 beyond 4."""
    factors = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429]

    def positive(size: Term) -> Term:
        size = size.clamp(0, 4)
        t = 1 / (1 + size * 0.3275911)
        return 1 - _polynomial(t, factors) * t / rewriter.barrier(_exp(size * size))

    def by_products(size: Term, fxp: int) -> Term:
        size = where(size > 4.0, 4.0, size)
        t = polynomials.newton(size * (0.3275911 / 2) + 0.5, 0.5, 1.2) * 0.5
        return 1 - _polynomial(t, factors) * t * polynomials.bounded_decay(size * size, fxp)

    if _takes_products(rewriter, x):
        return _odd(x, lambda size: _by_products(rewriter, size, by_products))
    return _odd(x, positive)


def _tan(rewriter: Rewriter, x: Term) -> Term:
    return Term(hlo.sine(x.value)) / Term(hlo.cosine(x.value))


def _sinh(rewriter: Rewriter, x: Term) -> Term:
    """Return ``(u + u/(u+1))/2`` with ``u = expm1(x)``."""

    def positive(size: Term) -> Term:
        u = _expm1(rewriter, size)
        return (u + u / (u + 1)) * 0.5

    return _odd(x, positive)


def _cosh(rewriter: Rewriter, x: Term) -> Term:
    e = _exponential(rewriter, x.magnitude())
    return (e + 1 / e) * 0.5


def _asinh(rewriter: Rewriter, x: Term) -> Term:
    return _odd(x, lambda size: _log(size + _sqrt(size * size + 1)))


def _acosh(rewriter: Rewriter, x: Term) -> Term:
    return _log(x + _sqrt(x * x - 1))


def _atanh(rewriter: Rewriter, x: Term) -> Term:
    return _log((1 + x) / (1 - x)) * 0.5


def _asin(rewriter: Rewriter, x: Term) -> Term:
    return Term(hlo.atan2(x.value, _sqrt(1 - x * x).value))


def _acos(rewriter: Rewriter, x: Term) -> Term:
    return Term(hlo.atan2(_sqrt(1 - x * x).value, x.value))


def _cbrt(rewriter: Rewriter, x: Term) -> Term:
    return _odd(x, lambda size: where(size > 0.0, _power(rewriter, size, 1 / 3), size))


def _odd(x: Term, positive: Callable[[Term], Term]) -> Term:
    """Return an odd function: that of ``|x|``, with the sign of ``x``."""
    negative = x < 0.0
    found = positive(where(negative, -x, x))
    return where(negative, -found, found)


def _polynomial(x: Term, factors: Sequence[float]) -> Term:
    """Return ``f0 + f1 x + f2 x² + …`` by Horner's rule."""
    made = x * factors[-1] + factors[-2]
    for factor in reversed(factors[:-2]):
        made = made * x + factor
    return made


Writer = Callable[[Rewriter, Term], Term]

_FUNCTIONS: Mapping[str, Writer] = {
    "cbrt": _cbrt,
    "exponential": _exponential,
    "exponential_minus_one": _expm1,
    "log_plus_one": _log1p,
    "logistic": _logistic,
    "tan": _tan,
    "tanh": _tanh,
}

_CALLS: Mapping[str, Writer] = {
    "mhlo.acos": _acos,
    "mhlo.acosh": _acosh,
    "mhlo.asin": _asin,
    "mhlo.asinh": _asinh,
    "mhlo.atanh": _atanh,
    "mhlo.cosh": _cosh,
    "mhlo.erf": _erf,
    "mhlo.sinh": _sinh,
    "mhlo.tan": _tan,
}

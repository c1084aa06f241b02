"""Passes over products and quotients of floats. Imports JAX."""

from __future__ import annotations

import math

from mplang_spu.lowering.draft import Draft
from mplang_spu.lowering.signs import never_negative
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, replace, where

__all__ = ["divide_by_constants", "divide_widely", "multiply_by_small", "times"]

PRECISE = 1e-4
"""How far a factor may be from what was written, relative to it."""


def divide_by_constants(draft: Draft) -> None:
    """Multiply by the reciprocal of a constant divisor, by public operands.

    libspu's compiler makes a constant of ``1/c``, and moves it: ``x/n * y/n`` becomes
    ``x*y * 1/n²``, of which 18 fraction bits keep nothing, and ``x*y`` overflows. It leaves
    operands where they are.
    """
    for op in draft.ops("divide"):
        number = splat_of(op.operands[1])
        if number is None or not is_float(op.results[0]) or splat_of(op.operands[0]) is not None:
            continue
        if math.isfinite(number) and abs(float(number)) * draft.target.factors > 1:
            with draft.before(op):
                replace(op, times(draft, Term(op.operands[0]), 1 / float(number)))


def multiply_by_small(draft: Draft) -> None:
    """Multiply by a constant that has few bits in the fixed point in two steps.

    1e-5 is 2.6 steps of 18 bits: a factor of 3 steps is 14 % off.
    """
    for op in draft.ops("multiply"):
        for number, other in zip(map(splat_of, op.operands), reversed(op.operands), strict=True):
            if number is None or splat_of(other) is not None or not is_float(other):
                continue
            if number and not _is_precise(draft, float(number)):
                with draft.before(op):
                    replace(op, times(draft, Term(other), float(number)))
                break


def times(draft: Draft, x: Term, factor: float) -> Term:
    """Return ``x * factor``; what is small is ``m * 2^-e``, first the power, exact each."""
    mantissa, exponent = math.frexp(factor)
    if exponent >= 0 or _is_precise(draft, factor):
        return draft.scaled(x, factor)
    powers = []
    while exponent < 0:
        powers.append(max(exponent, -draft.target.fxp))
        exponent -= powers[-1]
    return draft.scaled(x, *(2.0**power for power in powers), mantissa)


def _is_precise(draft: Draft, factor: float) -> bool:
    """Tell whether a factor is held as it is, or nearly."""
    steps = factor / draft.target.step
    return not math.isfinite(factor) or abs(round(steps) - steps) <= PRECISE * abs(steps)


def divide_widely(draft: Draft) -> None:
    """Divide by large numbers: scale both by a power of two where the divisor is large.

    libspu's reciprocal is 0 from ``2^f`` on, f being the fraction bits.
    """
    power = max(draft.target.fxp - 2, 1)
    for op in draft.ops("divide"):
        if not is_float(op.results[0]) or splat_of(op.operands[1]) is not None:
            continue
        with draft.before(op):
            x, y = map(Term, op.operands)
            size = y if never_negative(op.operands[1]) else y.magnitude()
            large = size > 2.0**power
            a, b = (where(large, draft.scaled(term, 2.0**-power), term) for term in (x, y))
            replace(op, a / b)

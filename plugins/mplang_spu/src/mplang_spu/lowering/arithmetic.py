"""Passes over products and quotients of floats. Imports JAX."""

from __future__ import annotations

import math

import numpy as np
from jaxlib.mlir import ir

from mplang_spu.lowering.draft import Draft
from mplang_spu.lowering.signs import never_negative
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.tables import Table, table_of
from mplang_spu.lowering.term import Term, constant, is_float, numpy_type, replace, where

__all__ = ["divide_by_constants", "divide_widely", "interpolate", "multiply_by_small", "times"]

PRECISE = 2.0**-24
"""How far a factor may be from what was written, relative to it: as far as in float32."""


def interpolate(draft: Draft) -> None:
    """Write ``a*(1-s) + b*s``, as in ``linspace``, as ``a + (b-a)*s``, with all bits of ``s``.

    A tenth is half a step off at most, and a hundred tenths are 50: the integers that lie at an
    edge of a histogram would fall on either side. The rest of ``s`` takes part in a product of
    its own.
    """
    for op in draft.ops("add"):
        left, right = map(_weighted, op.operands)
        if left is None or right is None or not is_float(op.results[0]):
            continue
        (a, of_a), (b, of_b) = left, right
        if max(np.ndim(of_a), np.ndim(of_b)) == 0 or np.abs(of_a + of_b - 1).max() > 1e-4:
            continue
        with draft.before(op):
            replace(op, _between(draft, a, b, of_b))


def _weighted(value: ir.Value) -> tuple[Term, Table] | None:
    """Return what is multiplied with which small table of constants."""
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.multiply":
        return None
    for term, factor in (op.operands, reversed(op.operands)):
        if table_of(term) is None and (table := table_of(factor)) is not None:
            return Term(term), table
    return None


def _between(draft: Draft, a: Term, b: Term, weights: Table) -> Term:
    step, single = draft.target.step, numpy_type(a.kind.element_type)
    high = (np.rint(weights / step) * step).astype(single).astype(np.float64)
    low = weights - high
    whole = draft.apart(b - a)
    found = a + whole * constant(a.kind, high)
    if not low.any():
        return found
    power = min(draft.target.fxp - 2, int(-np.log2(np.abs(low).max())))
    rest = whole * constant(a.kind, low * 2.0**power)
    return found + draft.scaled(rest, 2.0**-power)


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


def times(draft: Draft, x: Term, factor: float, precise: float | None = None) -> Term:
    """Return ``x * factor``; what is small is ``m * 2^-e``, first the power, exact each.

    Args:
        draft: where it is written.
        x: a float.
        factor: a number.
        precise: how far the factor may be off, relative to it.
    """
    mantissa, exponent = math.frexp(factor)
    if exponent >= 0 or _is_precise(draft, factor, precise):
        return draft.scaled(x, factor)
    powers = []
    while exponent < 0:
        powers.append(max(exponent, -draft.target.fxp))
        exponent -= powers[-1]
    return draft.scaled(x, *(2.0**power for power in powers), mantissa)


def _is_precise(draft: Draft, factor: float, precise: float | None = None) -> bool:
    """Return whether a factor is held as it is, or nearly: its mantissa has ``fxp`` bits."""
    if precise is None:
        precise = max(PRECISE, 16 * draft.target.step)
    steps = factor / draft.target.step
    return not math.isfinite(factor) or abs(round(steps) - steps) <= precise * abs(steps)


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

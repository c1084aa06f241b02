"""Passes over products and quotients. Imports JAX."""

from __future__ import annotations

import math

import numpy as np
from jaxlib.mlir import ir

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.signs import never_negative
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.tables import Table, table_of
from mplang_spu.lowering.term import Term, constant, is_float, numpy_type, replace, where

PRECISE = 2.0**-24
"""Maximum relative error of a factor that is used as written: that of float32."""


def multiply_bools(rewriter: Rewriter) -> None:
    """Count what products of bools add up to, and compare with zero: libspu adds modulo 2."""
    for op in rewriter.ops("convolution", "dot_general"):
        kind = ir.RankedTensorType(op.results[0].type)
        if kind.element_type.width > 1:
            continue
        with rewriter.before(op):
            wide = ir.RankedTensorType.get(kind.shape, rewriter.integer)
            given = [Term(value).to(rewriter.integer).value for value in op.operands]
            named = {each.name: each.attr for each in op.attributes}
            counts = ir.Operation.create(op.name, [wide], given, named)
            replace(op, Term(counts.results[0]) > 0)


def interpolate(rewriter: Rewriter) -> None:
    """Rewrite ``a*(1-s) + b*s``, as in ``linspace``, to ``a + (b-a)*s``, with all bits of ``s``.

    Rounded to the fixed point, a tenth is up to half a step off, and a hundred tenths 50 steps:
    integers at the edge of a histogram bin would fall on either side. A second product adds the
    remaining bits of ``s``.
    """
    for op in rewriter.ops("add"):
        left, right = map(_weighted, op.operands)
        if left is None or right is None or not is_float(op.results[0]):
            continue
        (a, of_a), (b, of_b) = left, right
        if max(np.ndim(of_a), np.ndim(of_b)) == 0 or np.abs(of_a + of_b - 1).max() > 1e-4:
            continue
        with rewriter.before(op):
            replace(op, _between(rewriter, a, b, of_b))


def _weighted(value: ir.Value) -> tuple[Term, Table] | None:
    """Return the factors of a product with a small constant table, the table last."""
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.multiply":
        return None
    for term, factor in (op.operands, reversed(op.operands)):
        if table_of(term) is None and (table := table_of(factor)) is not None:
            return Term(term), table
    return None


def _between(rewriter: Rewriter, a: Term, b: Term, weights: Table) -> Term:
    step, single = rewriter.target.step, numpy_type(a.kind.element_type)
    high = (np.rint(weights / step) * step).astype(single).astype(np.float64)
    low = weights - high
    whole = rewriter.barrier(b - a)
    found = a + whole * constant(a.kind, high)
    if not low.any():
        return found
    power = min(rewriter.target.fxp - 2, int(-np.log2(np.abs(low).max())))
    rest = whole * constant(a.kind, low * 2.0**power)
    return found + rewriter.scaled(rest, 2.0**-power)


def divide_by_constants(rewriter: Rewriter) -> None:
    """Rewrite division by a constant to multiplication by its reciprocal, as a public operand.

    libspu's compiler folds ``1/c`` to a constant and moves it: ``x/n * y/n`` becomes
    ``x*y * 1/n²``, which 18 fraction bits round to 0, and ``x*y`` overflows. It does not move
    operands.
    """
    for op in rewriter.ops("divide"):
        number = splat_of(op.operands[1])
        if number is None or not is_float(op.results[0]) or splat_of(op.operands[0]) is not None:
            continue
        if math.isfinite(number) and abs(float(number)) * rewriter.target.factors > 1:
            with rewriter.before(op):
                replace(op, times(rewriter, Term(op.operands[0]), 1 / float(number)))


def multiply_by_small(rewriter: Rewriter) -> None:
    """Split multiplication by a constant with few significant bits in the fixed point in two.

    1e-5 is 2.6 steps with 18 fraction bits: rounded to 3 steps it is 14 % off.
    """
    for op in rewriter.ops("multiply"):
        for number, other in zip(map(splat_of, op.operands), reversed(op.operands), strict=True):
            if number is None or splat_of(other) is not None or not is_float(other):
                continue
            if number and not _is_precise(rewriter, float(number)):
                with rewriter.before(op):
                    replace(op, times(rewriter, Term(other), float(number)))
                break


def times(rewriter: Rewriter, x: Term, factor: float, precise: float | None = None) -> Term:
    """Multiply by a factor; a small one is split into ``m * 2^-e``, each exact.

    Args:
        rewriter: the module.
        x: a float.
        factor: a finite number.
        precise: maximum relative error of a factor that is not split.

    Returns:
        The product.
    """
    mantissa, exponent = math.frexp(factor)
    if exponent >= 0 or _is_precise(rewriter, factor, precise):
        return rewriter.scaled(x, factor)
    powers = []
    while exponent < 0:
        powers.append(max(exponent, -rewriter.target.fxp))
        exponent -= powers[-1]
    return rewriter.scaled(x, *(2.0**power for power in powers), mantissa)


def _is_precise(rewriter: Rewriter, factor: float, precise: float | None = None) -> bool:
    """Return whether the fixed point holds a factor within :data:`PRECISE`, or nearly."""
    if precise is None:
        precise = max(PRECISE, 16 * rewriter.target.step)  # a split factor is a step off, too
    steps = factor / rewriter.target.step
    return not math.isfinite(factor) or abs(round(steps) - steps) <= precise * abs(steps)


def divide_widely(rewriter: Rewriter) -> None:
    """Scale dividend and divisor down by a power of two, if the divisor is large.

    libspu's reciprocal is 0 from ``2^f`` on, for f fraction bits.
    """
    power = max(rewriter.target.fxp - 2, 1)
    for op in rewriter.ops("divide"):
        if not is_float(op.results[0]) or splat_of(op.operands[1]) is not None:
            continue
        with rewriter.before(op):
            x, y = map(Term, op.operands)
            size = y if never_negative(op.operands[1]) else y.magnitude()
            large = size > 2.0**power
            a, b = (where(large, rewriter.scaled(term, 2.0**-power), term) for term in (x, y))
            replace(op, a / b)

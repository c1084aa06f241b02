"""Passes over shifts. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, replace, splat, where

_SHIFTS = ("shift_left", "shift_right_arithmetic", "shift_right_logical")


def count_leading_zeros(rewriter: Rewriter) -> None:
    """Count the bits at and below the highest one that is set, which libspu can."""
    for op in rewriter.ops("count_leading_zeros"):
        with rewriter.before(op):
            x = Term(op.operands[0])
            width = x.kind.element_type.width
            for k in range((width - 1).bit_length()):
                x = x | shifted("stablehlo.shift_right_logical", x, x.like(2**k))
            replace(op, width - Term(hlo.popcnt(x.value)))


def bound_shifts(rewriter: Rewriter) -> None:
    """Give shifts by a negative or too large amount their results in XLA: zeros, or all signs.

    libspu takes the amount modulo the size of its ring.
    """
    for op in rewriter.ops(*_SHIFTS):
        x, by = map(Term, op.operands)
        is_arithmetic = op.name == "stablehlo.shift_right_arithmetic"
        if _is_within(by):
            continue
        with rewriter.before(op):
            fits, last = _fits(by), by.kind.element_type.width - 1 if is_arithmetic else 0
            made = shifted(op.name, x, where(fits, by, by.like(last)))
            replace(op, made if is_arithmetic else where(fits, made, made.like(0)))


def shift_signs(rewriter: Rewriter) -> None:
    """Write an arithmetic shift of unsigned integers, whose highest bit is a sign to XLA.

    It is a logical one, of the inverted bits of a negative number. libspu's integers have their
    signs in the ring, where an unsigned one has none.
    """
    for op in rewriter.ops("shift_right_arithmetic"):
        x, by = map(Term, op.operands)
        if not x.kind.element_type.is_unsigned:
            continue
        width = x.kind.element_type.width
        with rewriter.before(op):
            inverts = where(x > 2 ** (width - 1) - 1, 2**width - 1, x.like(0))
            replace(op, shifted("stablehlo.shift_right_logical", x ^ inverts, by) ^ inverts)


def _is_within(by: Term) -> bool:
    """Return whether an amount is a constant within the type."""
    number = splat_of(by.value)
    return number is not None and bool(0 <= int(number) < by.kind.element_type.width)


def _fits(by: Term) -> Term:
    element = by.kind.element_type
    below: Term = by < element.width
    return below if element.is_unsigned else below & ~(by < 0)


def shifted(name: str, x: Term, by: Term) -> Term:
    """Return the result of a shift.

    Args:
        name: of the op.
        x: integers.
        by: amounts.
    """
    return Term(ir.Operation.create(name, [x.kind], [x.value, by.value]).results[0])


def shift_all_bits(rewriter: Rewriter) -> None:
    """Rewrite an arithmetic shift to see all bits of the ring: ``x >> n`` is ``~(~x >> n)``.

    libspu keeps shares of bits as narrow as it knows the number to be, such as two bits for
    ``x & 3`` and one for a comparison; ABY3's arithmetic shift to the right takes full ones only,
    so that ``(x & 3) >> 1`` fails at the parties. The inversions are local and cost nothing.
    """
    if rewriter.target.protocol != "ABY3":
        return
    for op in rewriter.ops("shift_right_arithmetic"):
        x, by = map(Term, op.operands)
        with rewriter.before(op):
            ones = splat(x.value.type, -1)
            replace(op, shifted(op.name, x ^ ones, by) ^ ones)

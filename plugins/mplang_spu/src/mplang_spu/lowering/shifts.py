"""Shifts to the right of numbers with few bits. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir.dialects import stablehlo

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.term import Term, replace, splat


def shift_all_bits(rewriter: Rewriter) -> None:
    """Have an arithmetic shift see all bits of the ring: ``x >> n`` is ``~(~x >> n)``.

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
            shifted = stablehlo.shift_right_arithmetic((x ^ ones).value, by.value)
            replace(op, Term(shifted) ^ ones)

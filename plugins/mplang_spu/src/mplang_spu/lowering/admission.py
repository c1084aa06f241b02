"""Admission list of StableHLO on SPU. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from mplang_stablehlo.admission import Admission
from mplang_stablehlo.custom_calls import CALLS

from mplang_spu.lowering import libspu_ops

_ELSEWHERE = "do that part in plain at one party"
_ELEMENTS = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64"


def _bitcast(op: ir.Operation) -> None:
    kinds = [ir.RankedTensorType(value.type) for value in (*op.operands, *op.results)]
    if any(isinstance(kind.element_type, ir.FloatType) for kind in kinds):
        raise ValueError(
            "bitcast_convert of floats: its numbers have no such bits; where that is of "
            "jax.random, draw the numbers in plain at one party"
        )


def _convert(op: ir.Operation) -> None:
    source, target = (
        ir.RankedTensorType(value.type).element_type for value in (op.operands[0], op.results[0])
    )
    if source.width > 16 and isinstance(source, ir.FloatType) and isinstance(target, ir.F16Type):
        raise ValueError(
            f"convert of {source} to {target}: there is none; keep to float32, which is the same "
            "fixed point (JAX sums float16 in float32)"
        )


SPU = Admission(
    "SPU",
    libspu_ops.OPS | libspu_ops.REWRITTEN,
    frozenset(_ELEMENTS.split()),
    CALLS,
    rules={**libspu_ops.FORMS, "bitcast_convert": _bitcast, "convert": _convert},
    advice={
        "rng_bit_generator": f"it has no random bits (of a JAX key of kind 'rbg'); {_ELSEWHERE}",
        "fft": f"it has no Fourier transforms; {_ELSEWHERE}",
        "complex": f"it has no complex numbers; {_ELSEWHERE}",
        "imag": f"it has no complex numbers; {_ELSEWHERE}",
        "real": f"it has no complex numbers; {_ELSEWHERE}",
        "cholesky": f"it has no Cholesky decompositions; {_ELSEWHERE}",
        "triangular_solve": f"it has no solver of triangular systems; {_ELSEWHERE}",
        "count_leading_zeros": "it has no count of leading zeros; compare with powers of two, as "
        "in (x[..., None] < 2 ** jnp.arange(31)).sum(-1) + 1 for an int32 that is not negative",
        "reduce_precision": "its floats are fixed point, whose precision is that of the device; "
        "leave it out",
        "cbrt": f"it has no cube roots; {_ELSEWHERE}",
        "lapack_": f"it has no linear algebra of LAPACK (decompositions, solve); {_ELSEWHERE}",
    },
    largest=4 << 30,
)
"""What libspu compiles, and what the lowering makes such of.

Other custom calls of libspu are refused: one prints secrets.
"""

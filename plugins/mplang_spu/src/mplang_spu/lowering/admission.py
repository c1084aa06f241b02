"""Admission list of StableHLO on SPU. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from mplang_stablehlo.ext import CUSTOM_CALLS, Admission

from mplang_spu.lowering import libspu_ops

_COMPLEX = "it has no complex numbers; compute real and imaginary parts as two arrays"
_LINEAR_ALGEBRA = (
    "its linear algebra is for real matrices with at most 32 rows or columns, in FM128 with 30 to "
    "43 fraction bits, and has eigenvalues of symmetric matrices only (jnp.linalg.eigh); take "
    "field FM128, fewer columns, or blocks of a matrix"
)
_ELEMENTS = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64"


def _bitcast(op: ir.Operation) -> None:
    kinds = [ir.RankedTensorType(value.type) for value in (*op.operands, *op.results)]
    if any(isinstance(kind.element_type, ir.FloatType) for kind in kinds):
        raise ValueError(
            "bitcast_convert of floats: its numbers have no such bits; where that is of "
            "jax.random, pass the random numbers as an argument"
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
    CUSTOM_CALLS,
    rules={**libspu_ops.FORMS, "bitcast_convert": _bitcast, "convert": _convert},
    advice={
        "rng_bit_generator": "it has no random bits (of a JAX key of kind 'rbg'); make the key by "
        "jax.random.key(seed, impl='threefry2x32')",
        "fft": "it has no Fourier transforms; multiply by their matrix, whose real part is "
        "jnp.cos(2 * jnp.pi / n * jnp.outer(i, i)) for i = jnp.arange(n)",
        "complex": _COMPLEX,
        "imag": _COMPLEX,
        "real": _COMPLEX,
        "cholesky": f"it has no such op; {_LINEAR_ALGEBRA}",
        "triangular_solve": f"it has no such op; {_LINEAR_ALGEBRA}",
        "reduce_precision": "its floats are fixed point, whose precision is that of the device; "
        "leave it out",
        "lapack_": _LINEAR_ALGEBRA,
    },
    largest=4 << 30,
)
"""What libspu compiles, and what the lowering makes such of.

Other custom calls of libspu are refused: one prints secrets.
"""

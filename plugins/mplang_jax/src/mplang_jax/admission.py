"""Admission list of StableHLO on XLA at a party. Imports JAX."""

from __future__ import annotations

import functools

from mplang_stablehlo import read
from mplang_stablehlo.ext import ARITHMETIC, CUSTOM_CALLS, STRUCTURE, Admission

from mplang_jax import lapack

_COMPLEX = {"complex", "imag", "real", "fft"}
_LINEAR = {"cholesky", "triangular_solve"}
_RANDOM = {"rng_bit_generator"}
_ELEMENTS = """
i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 bf16 f16 f32 f64 complex<f32> complex<f64>
"""

_CALLBACK = (
    "a Python callback cannot run there, as jax.debug.print and jax.pure_callback make one; "
    "return from the function what you want to see, and mp.fetch it, and write with jnp what "
    "is computed"
)

XLA = Admission(
    "XLA",
    STRUCTURE | ARITHMETIC | _COMPLEX | _LINEAR | _RANDOM,
    frozenset(_ELEMENTS.split()),
    {**CUSTOM_CALLS, **lapack.CALLS},
    advice=dict.fromkeys(("xla_ffi_python", "xla_python", "xla_ffi_partitioned_python"), _CALLBACK),
)
"""Ops that run there: no Python callbacks, nothing that talks to a host or to other devices."""


@functools.lru_cache(maxsize=256)
def is_admitted(code: bytes) -> bool:
    """Return whether XLA may run a code."""
    try:
        XLA.admit(read(code))
    except ValueError:
        return False
    return True

"""JAX frontend: Python functions of arrays compiled to StableHLO, and run on XLA."""

from mplang_jax.frontend import jax_compile, jax_compile_from_data

__all__ = ["jax_compile", "jax_compile_from_data"]

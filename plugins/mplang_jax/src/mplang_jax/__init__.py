"""JAX frontend: Python functions of arrays compiled to StableHLO, and run on XLA."""

import os

# as JAX sets it; read when the first module of jaxlib is loaded, which may be before JAX
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from mplang_jax.frontend import jax_compile, jax_compile_from_data

__all__ = ["jax_compile", "jax_compile_from_data"]

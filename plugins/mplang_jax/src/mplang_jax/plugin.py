"""What the core is told of this package. Imports no JAX."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.feop import Feop
from mplang_core.plugins import Check, Dialect, KernelSpec, hookimpl
from mplang_jax import frontend, kernel, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide ``jax.compile``."""
    return [frontend.jax_compile]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide ``jax.run``."""
    return [Dialect("jax", ops=[ops.RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what ``jax.run`` does at a party."""
    return [KernelSpec(["jax.run"], kernel.run)]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Compile and run one function."""
    import jax
    import numpy as np

    program = frontend.jax_compile_from_data(lambda x: x + 1, np.float32(1)).pfunc
    (found,) = kernel.executable(program.attrs["code"], program.attrs["x64"])(np.float32(1))
    where = jax.devices()[0].platform
    return [Check("a function compiles and runs", found == 2, f"jax {jax.__version__} on {where}")]

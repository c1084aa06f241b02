"""Plugin hooks of `mplang_jax`. Imports no JAX."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Check, Dialect, Feop, KernelSpec, hookimpl, nest_rules
from mplang_jax import frontend, kernel, nests, ops

nest_rules.insert(0, nests.rule_of)


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the compiler ``jax.compile``."""
    return [frontend.jax_compile]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``jax`` with the op ``jax.run``."""
    return [Dialect("jax", ops=[ops.RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernel of ``jax.run``."""
    return [KernelSpec(["jax.run"], kernel.run)]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that a function compiles and runs."""
    import jax
    import numpy as np

    program = frontend.jax_compile_from_data(lambda x: x + 1, np.float32(1)).pfunc
    (found,) = kernel.executable(program.attrs["code"], program.attrs["x64"])(np.float32(1))
    where = jax.devices()[0].platform
    return [Check("a function compiles and runs", found == 2, f"jax {jax.__version__} on {where}")]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_stablehlo.ext", "mplang_jax.admission", "jaxlib.lapack"]

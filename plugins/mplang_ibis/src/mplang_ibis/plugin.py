"""What the core is told of this package. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.feop import Feop
from mplang_core.plugins import Dialect, KernelSpec, hookimpl
from mplang_ibis import frontend, kernels, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide the compiler, and the ways between tables, tensors and literals."""
    return [frontend.ibis_compile, ops.literal, ops.to_tensor, ops.from_tensor]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide ``ibis.run``, and how tables are written."""
    return [Dialect("ibis", ops=[ops.RUN], codecs={"table": kernels.CODEC})]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what the ops do at a party."""
    return [
        KernelSpec(["ibis.run"], kernels.run),
        KernelSpec(["ibis.literal"], kernels.literal),
        KernelSpec(["ibis.to_tensor"], kernels.to_tensor),
        KernelSpec(["ibis.from_tensor"], kernels.from_tensor),
    ]

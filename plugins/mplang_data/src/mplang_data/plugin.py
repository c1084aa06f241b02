"""Plugin hooks of `mplang_data`. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl
from mplang_data import kernels, ops
from mplang_data.stored import kernels as store_kernels, ops as store_ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops that read data sets, and those that store and load results."""
    return [ops.read, store_ops.store, store_ops.load, store_ops.remove]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``data``."""
    return [Dialect("data", ops=[store_ops.STORE])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels."""
    return [
        KernelSpec(["data.read"], kernels.read),
        KernelSpec(["data.store"], store_kernels.store),
        KernelSpec(["data.load"], store_kernels.load),
        KernelSpec(["data.remove"], store_kernels.remove),
    ]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what sources import when they are first read."""
    return ["mplang_data.columns", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"]

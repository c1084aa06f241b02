"""Plugin hooks of `mplang_data`. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Feop, KernelSpec, hookimpl
from mplang_data import kernels, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the op that reads a data set."""
    return [ops.read]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return its kernel."""
    return [KernelSpec(["data.read"], kernels.read)]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what sources import when they are first read."""
    return ["mplang_data.sources.tables", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"]

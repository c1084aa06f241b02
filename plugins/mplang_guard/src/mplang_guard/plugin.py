"""Plugin hooks of `mplang_guard`. Imports no Arrow and no DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Feop, KernelSpec, hookimpl
from mplang_guard import kernels, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the guard."""
    return [ops.guarded]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return its kernel."""
    return [KernelSpec(["guard.aggregate"], kernels.aggregate)]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernel imports when it first runs."""
    return ["mplang_ibis.ext", "mplang_tables.arrow"]

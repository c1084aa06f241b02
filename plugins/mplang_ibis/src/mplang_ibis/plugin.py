"""Plugin hooks of `mplang_ibis`. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl
from mplang_ibis import frontend, kernels, ops, settings


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the compiler, and the ops between tables, tensors and literals."""
    return [frontend.ibis_compile, ops.literal, ops.to_tensor, ops.from_tensor]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``ibis``, with the op ``ibis.run``."""
    return [Dialect("ibis", ops=[ops.RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels of the dialect."""
    return [
        KernelSpec(["ibis.run"], kernels.run),
        KernelSpec(["ibis.literal"], kernels.literal),
        KernelSpec(["ibis.to_tensor"], kernels.to_tensor),
        KernelSpec(["ibis.from_tensor"], kernels.from_tensor),
    ]


@hookimpl
def mplang_configure(section: Mapping[str, Any]) -> None:
    """Take the limits of queries; see :class:`mplang_ibis.settings.QuerySettings`."""
    settings.configure(section)


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_ibis.query", "mplang_tables.arrow", "pandas"]

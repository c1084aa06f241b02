"""Plugin hooks of `mplang_ibis`. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl
from mplang_ibis import frontend, kernels, ops, settings, statement


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the compilers of functions and of text."""
    return [frontend.ibis_compile, statement.ibis_sql]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``ibis``, with the op ``ibis.run``."""
    return [Dialect("ibis", ops=[ops.RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernel of ``ibis.run``."""
    return [KernelSpec(["ibis.run"], kernels.run)]


@hookimpl
def mplang_configure(section: Mapping[str, Any]) -> None:
    """Take the limits of queries; see :class:`mplang_ibis.settings.QuerySettings`."""
    settings.configure(section)


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_ibis.query", "mplang_tables.arrow", "pandas"]

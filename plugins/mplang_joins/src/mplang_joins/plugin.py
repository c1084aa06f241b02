"""Plugin hooks of `mplang_joins`. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ext import Feop, KernelContext, KernelSpec, hookimpl
from mplang_joins import ops


def _salt(ctx: KernelContext) -> Any:
    from mplang_joins.kernels import salt

    return salt(ctx)


def _enter(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    from mplang_joins.kernels import enter

    return enter(ctx, *operands, **attrs)


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops of the parties that bring tables."""
    return [ops.salt, ops.enter]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels."""
    return [KernelSpec(["joins.salt"], _salt), KernelSpec(["joins.enter"], _enter)]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_joins.kernels"]

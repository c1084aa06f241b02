"""Plugin hooks of `mplang_joins`. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ext import (
    Dialect,
    Feop,
    JointRun,
    KernelContext,
    KernelSpec,
    hookimpl,
    nest_rules,
)
from mplang_joins import ops
from mplang_joins.across import groups, run
from mplang_joins.group_table import TABLE, group_table

nest_rules.insert(0, groups.rule_of)


def _salt(ctx: KernelContext) -> Any:
    from mplang_joins.kernels import salt

    return salt(ctx)


def _enter(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    from mplang_joins.kernels import enter

    return enter(ctx, *operands, **attrs)


def _reduced(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    from mplang_joins.kernels import reduced

    return reduced(ctx, *operands, **attrs)


def _table(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    from mplang_joins.kernels import group_table

    return group_table(ctx, *operands, **attrs)


@hookimpl
def mplang_joint_runs() -> Sequence[JointRun]:
    """Return what runs queries over tables of several parties on an SPU."""
    return [JointRun("queries over tables", run.takes, run.run)]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the op that makes a table of groups."""
    return [Dialect("joins", ops=[TABLE])]


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops of the parties that bring tables."""
    return [ops.salt, ops.enter, ops.reduced, group_table]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels."""
    made = {"salt": _salt, "enter": _enter, "reduced": _reduced, "table": _table}
    return [KernelSpec([f"joins.{name}"], kernel) for name, kernel in made.items()]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_joins.kernels"]

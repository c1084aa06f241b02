"""Plugin hooks of `mplang_joins`. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mplang_core.ext import Dialect, Feop, JointRun, KernelContext, KernelSpec, hookimpl, nest_rules
from mplang_joins import ops
from mplang_joins.across import groups, run
from mplang_joins.group_table import TABLE, group_table

nest_rules.insert(0, groups.rule_of)


def _late(name: str) -> Callable[..., Any]:
    """Return a kernel whose module is imported when it first runs."""

    def run(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
        return getattr(import_module("mplang_joins.kernels"), name)(ctx, *operands, **attrs)

    return run


@hookimpl
def mplang_joint_runs() -> Sequence[JointRun]:
    """Return what runs queries over tables of several parties on an SPU."""
    return [JointRun("joins.queries", run.takes, run.run)]


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
    names = {"salt": "salt", "enter": "enter", "reduced": "reduced", "table": "group_table"}
    return [KernelSpec([f"joins.{op}"], _late(name)) for op, name in names.items()]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_joins.kernels"]

"""Plugin hooks of `mplang_joins`. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from mplang_core.ext import Dialect, Feop, JointRun, KernelContext, KernelSpec, hookimpl, nest_rules
from mplang_joins import ops
from mplang_joins.across import groups, run
from mplang_joins.group_table import TABLE, group_table
from mplang_joins.guarded.ops import GUARDED, units
from mplang_joins.noised.ops import NOISED, noisy_units

nest_rules.insert(0, groups.rule_of)


def _late(name: str, module: str = "mplang_joins.kernels") -> Callable[..., Any]:
    """Return a kernel whose module is imported when it first runs."""

    def run(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
        return getattr(import_module(module), name)(ctx, *operands, **attrs)

    return run


@hookimpl
def mplang_joint_runs() -> Sequence[JointRun]:
    """Return what runs queries over tables of several parties on an SPU."""
    return [JointRun("joins.queries", run.takes, run.run, ["match"])]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the op that makes a table of groups, and those that guard on shares."""
    return [Dialect("joins", ops=[TABLE, GUARDED, NOISED])]


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops of the parties that bring tables."""
    made = [ops.salt, ops.enter, ops.reduced, ops.placed, ops.grouped, units, noisy_units]
    return [*made, group_table]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels."""
    names = {each: each for each in ("salt", "enter", "reduced", "placed", "grouped")}
    names["table"] = "group_table"
    made = [KernelSpec([f"joins.{op}"], _late(name)) for op, name in names.items()]
    for at_owner, on_shares in (("units", "guarded"), ("noisy_units", "noised")):
        module = f"mplang_joins.{on_shares}.kernels"
        made.append(KernelSpec([f"joins.{at_owner}"], _late(at_owner, module)))
        made.append(KernelSpec([f"joins.{on_shares}"], _late(on_shares, module), native="spu"))
    return made


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    parts = ("", "guarded.", "noised.")
    return [f"mplang_joins.{part}kernels" for part in parts]

"""Plugin hooks of `mplang_dp`. Imports no Arrow and no OpenDP."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Feop, KernelSpec, hookimpl
from mplang_dp import kernels, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops."""
    return [ops.count, ops.sum_, ops.mean, ops.histogram]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return their kernels."""
    return [
        KernelSpec(["dp.count"], kernels.count),
        KernelSpec(["dp.sum"], kernels.sum_),
        KernelSpec(["dp.mean"], kernels.mean),
        KernelSpec(["dp.histogram"], kernels.histogram),
    ]


@hookimpl
def mplang_preload() -> Sequence[str]:
    """Return what the kernels import when they first run."""
    return ["mplang_ibis.ext", "mplang_tables.arrow", "opendp.measurements", "pyarrow.compute"]

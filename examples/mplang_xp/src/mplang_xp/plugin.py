"""What mplang is told of this package. It is loaded for a look-up."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl

from mplang_xp import frontend, ops


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide the compiler."""
    return [frontend.xp_compile]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide the op that its programs consist of."""
    return [Dialect("xp", ops=[ops.RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what runs it at a party."""
    return [KernelSpec(["xp.run"], ops.run)]

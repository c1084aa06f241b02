"""Ops of the dialect ``ckks``, and plugin hooks for it."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl
from mplang_he import ops
from mplang_he.plugin import late

encrypt, decrypt, run, sum, roll = ops.CKKS


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the ops of the scheme."""
    return ops.CKKS


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``ckks``."""
    return [Dialect("ckks", ops=[ops.CKKS_RUN])]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels, whose library runs in a process of its own."""
    return [
        KernelSpec([f"ckks.{name}"], late(name), native="he")
        for name in ("encrypt", "decrypt", "run", "sum", "roll")
    ]

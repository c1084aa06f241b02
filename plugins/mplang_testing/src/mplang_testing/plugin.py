"""Plugin hooks of the kit: its dialect, so that workers find what the suites run."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core import is_feop
from mplang_core.ext import Dialect, Feop, KernelSpec, hookimpl, worker_kernels
from mplang_testing import dialect, secrets


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Provide the feops."""
    return [op for op in vars(dialect).values() if is_feop(op)]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Provide the types that no host may fetch."""
    codecs = {kind.name: secrets.CODEC for kind in secrets.SECRETS}
    return [Dialect("kit", types=secrets.SECRETS, codecs=codecs)]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Provide what the ops do at a party."""
    return [KernelSpec([name], run) for name, run in worker_kernels if name.startswith("kit.")]

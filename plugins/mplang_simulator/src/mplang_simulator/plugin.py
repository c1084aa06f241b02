"""Plugin hooks of `mplang_simulator`."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import BackendSpec, hookimpl
from mplang_simulator.host import Simulator
from mplang_simulator.rehearsal import rehearse


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Return the backend, also under the alias ``simulation``."""
    doc = "All parties in this process, one thread each."
    names = "simulator", "simulation"
    return [BackendSpec(name, Simulator, doc, rehearse) for name in names]

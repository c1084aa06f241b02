"""What the core is told of this package."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.plugins import hookimpl
from mplang_core.simp import BackendSpec
from mplang_simulator.host import Simulator


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Provide the backend, also under the name that seed 003 uses."""
    doc = "All parties in this process, one thread each."
    return [BackendSpec("simulator", Simulator, doc), BackendSpec("simulation", Simulator, doc)]

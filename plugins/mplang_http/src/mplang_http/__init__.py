"""HTTP backend: the driver that runs programs on workers, one of each party.

The worker itself is a package of its own, ``mplang-worker``. Where it is installed, its public
names can be imported from here, too.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "SimpHttpDriver": "coordinator.driver",
    "cluster_status": "cli.status",
    "control_client": "cli.control",
}
_OF_WORKERS = ("HttpCommunicator", "LocalCluster", "WorkerConfig", "create_worker_app")

__all__ = [
    "HttpCommunicator",
    "LocalCluster",
    "SimpHttpDriver",
    "WorkerConfig",
    "cluster_status",
    "control_client",
    "create_worker_app",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first access.

    Raises:
        ModuleNotFoundError: it is one of ``mplang-worker``, which is not installed.
    """
    if name in _MODULES:
        return getattr(importlib.import_module(f"mplang_http.{_MODULES[name]}"), name)
    if name in _OF_WORKERS:
        return getattr(_worker(name), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _worker(name: str) -> Any:
    """Return the package of workers, which is found by its entry point."""
    from mplang_core.ext import WORKERS, plugin_manager

    plugin = plugin_manager.entry(WORKERS, "http")
    if plugin is None:
        raise ModuleNotFoundError(
            f"{name} comes with the package of workers, which is not installed; "
            "try: pip install mplang-worker"
        )
    return importlib.import_module(plugin.__package__)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

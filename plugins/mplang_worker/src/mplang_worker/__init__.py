"""Worker of one party: a front, which owns the port, and processes for each session."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "HttpCommunicator": "link.comm",
    "LocalCluster": "cli.local",
    "WorkerConfig": "base.config",
    "create_worker_app": "front.app",
}

__all__ = ["HttpCommunicator", "LocalCluster", "WorkerConfig", "create_worker_app"]


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"mplang_worker.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__

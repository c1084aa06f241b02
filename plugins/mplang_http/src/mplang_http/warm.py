"""Warm process of a worker: imports once what engines need, gives up what they must not have.

It is the fork server of engines (:mod:`mplang_http.forks`); it has no key, no log file of its own,
and no port.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import mplang_core  # noqa: F401  (so that plugins are found by name)
from mplang_core.ext import plugin_manager
from mplang_http import confinement
from mplang_http.config import EngineConfig
from mplang_http.engine import EngineArgument, run
from mplang_http.worker_info import worker_info

__all__ = ["EngineArgument", "preload", "prepare", "run"]


def preload() -> None:
    """Import the plugins, and what their kernels import when they first run."""
    plugin_manager.load_all()
    for _, module in plugin_manager.modules():
        tell = getattr(module, "mplang_preload", None)
        for name in tell() if tell is not None else ():
            with contextlib.suppress(ImportError):  # its kernels tell
                importlib.import_module(name)


def prepare(argument: dict[str, Any]) -> dict[str, Any]:
    """Prepare this process to fork engines.

    Args:
        argument: the :class:`EngineConfig`, as ``config``.

    Returns:
        The description of the worker.
    """
    config = EngineConfig(**argument["config"])
    for module in config.imports:
        importlib.import_module(module)
    preload()
    info = worker_info(config)
    confinement.give_up_privileges()
    confinement.give_up_files(config.readable)
    return info

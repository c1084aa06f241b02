"""Description of a worker: versions, plugins, limits."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from typing import Any

from importlib_metadata import PackageNotFoundError, version
from mplang_analysis import MAX_EFFORT

from mplang_core.ext import CORE, WIRE_VERSION, PluginConflictError, passes, plugin_manager
from mplang_http.base.config import EngineConfig
from mplang_http.base.natives import native_names
from mplang_http.base.plugin_versions import Versions, compatible, installed, may_differ_here
from mplang_http.wire.protocols import PROTOCOLS, UPGRADE


def versions() -> dict[str, str]:
    """Return the versions that have to fit together at all parties that have them.

    They are those of the protocols, and, from package metadata, of the core, the engines, and all
    plugins that may be loaded. Some fit together though they differ, see :func:`compatible`.
    """
    found = {name: _version(name) for name in (CORE, "mplang-http", "jax", "spu")}
    there = {name: version for name, version in found.items() if version is not None}
    return PROTOCOLS | there | installed()


def own_versions() -> Versions:
    """Return what this process has, and which of it may differ from what others have."""
    return Versions(versions(), compatible(), may_differ_here())


@functools.cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def settings(told: Mapping[str, str]) -> dict[str, Any]:
    """Return what a run's keys depend on beside what the run is, so that it must be alike.

    Args:
        told: the versions that the coordinator has told this worker.
    """
    return {"told": dict(told), "wire": WIRE_VERSION, "link": UPGRADE, "passes": passes.known()}


def worker_info(config: EngineConfig) -> dict[str, Any]:
    """Return the description that ``/facts`` serves."""
    return {
        "name": config.name,
        "python": platform.python_version(),
        "alike": versions() | _settings() | {"passes": ", ".join(passes.known())},
        "compatible": compatible(),
        "plugins": [
            {
                "name": record.name,
                "group": record.group,
                "distribution": record.distribution,
                "version": record.version,
            }
            for record in plugin_manager.records()
            if record.status != "disabled"
        ],
        "native": native_names(),
        "dialects": None if config.dialects is None else list(config.dialects),
        "insecure": config.insecure,
        "mode": config.mode,
        "limits": config.limits.model_dump(),
        "timeouts": config.timeouts.model_dump(),
    }


def _settings() -> dict[str, str]:
    """Return what has to be the same at all parties, and what plugins want to be; loads those."""
    plugin_manager.load_all()
    found = {"analysis effort": ("mplang-analysis", str(MAX_EFFORT))}
    for distribution, module in plugin_manager.modules():
        ask = getattr(module, "mplang_settings", None)
        for name, value in (ask() if ask is not None else {}).items():
            other, _ = found.setdefault(name, (distribution, value))
            if other != distribution:
                raise PluginConflictError(
                    f"{other} and {distribution} both have a setting {name!r}; one of them has to "
                    "give it another name, which begins with its family"
                )
    return {name: value for name, (_, value) in sorted(found.items())}

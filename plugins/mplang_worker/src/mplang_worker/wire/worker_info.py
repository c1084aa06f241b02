"""Description of a worker: versions, plugins, limits."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from mplang_analysis import MAX_EFFORT
from mplang_http.ext import UPGRADE, compatible, native_names, pass_versions, versions

from mplang_core.ext import SECTIONS, WIRE_VERSION, PluginConflictError, passes, plugin_manager
from mplang_worker.base.config import EngineConfig


def settings(told: Mapping[str, str]) -> dict[str, Any]:
    """Return what a run's keys depend on beside what the run is, so that it must be alike.

    Args:
        told: the versions that the coordinator has told this worker.
    """
    return {
        "told": dict(told),
        "wire": WIRE_VERSION,
        "link": UPGRADE,
        "passes": passes.known(),
        "pass versions": pass_versions(),  # this worker's own, whatever a coordinator has told
    }


def worker_info(config: EngineConfig) -> dict[str, Any]:
    """Return the description that ``/facts`` serves."""
    return {
        "name": config.name,
        "python": platform.python_version(),
        "alike": versions() | _settings() | {"passes": ", ".join(passes.known())},
        "compatible": compatible(),
        "pass_versions": pass_versions(),
        "plugins": [
            {
                "name": record.name,
                "group": record.group,
                "distribution": record.distribution,
                "version": record.version,
            }
            for record in plugin_manager.records()
            if record.status != "disabled" and record.group != SECTIONS  # its owner's alone
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

"""Imports of a worker's processes: restricted, checked, and made ahead."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Mapping
from typing import TypeAlias

from mplang_core.ext import NATIVE, ConfigError, NativeSpec, PluginError, plugin_manager
from mplang_worker.base import allowed_plugins
from mplang_worker.base.config import EngineConfig, PluginConfig

Plugins: TypeAlias = Mapping[str, PluginConfig] | None
"""Plugins that may be imported, by distribution; all if ``None``."""


def restrict(plugins: Plugins) -> None:
    """Restrict the plugins that this process may import to these; import nothing.

    Raises:
        ConfigError: one is not installed in that version.
    """
    if plugins is None:
        return
    try:
        allowed_plugins.restrict({name: each.version for name, each in plugins.items()})
    except PluginError as error:
        raise ConfigError(f"field 'plugins': {error}", code=error.code) from None


def check_installed(config: EngineConfig) -> None:
    """Check that what a configuration imports is installed; import nothing.

    Raises:
        ConfigError: a module is missing, or a plugin in that version.
    """
    for module in config.imports:
        try:
            installed = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            installed = False
        if not installed:
            raise ConfigError(
                f"WorkerConfig {config.name}: field 'imports': no module {module!r} is installed; "
                "a worker imports nothing from its working directory",
                code="C003",
            )
    try:
        allowed_plugins.check({k: each.version for k, each in (config.plugins or {}).items()})
    except PluginError as error:
        raise ConfigError(
            f"WorkerConfig {config.name}: field 'plugins': {error}", code=error.code
        ) from None


def preload(plugins: Plugins) -> None:
    """Import the plugins, and what their kernels import when they first run.

    Args:
        plugins: those that may be imported; all if ``None``.

    Raises:
        ConfigError: one is not installed in that version.
    """
    restrict(plugins)
    plugin_manager.load_all()
    installed_natives()
    for _, module in plugin_manager.modules():
        tell = getattr(module, "mplang_preload", None)
        for name in tell() if tell is not None else ():
            with contextlib.suppress(ImportError):  # its kernels tell
                importlib.import_module(name)


def installed_natives() -> list[NativeSpec]:
    """Return the native services that are installed, and may be imported."""
    specs = []
    for service in plugin_manager.names(NATIVE):
        with contextlib.suppress(PluginError, TypeError):  # its process tells
            specs.append(NativeSpec.of(plugin_manager.entry(NATIVE, service)))
    return specs

"""Plugins: found through entry points, described by hooks, loaded when they are needed."""

from mplang_core.plugins.hookspecs import Check, Dialect, KernelSpec, hookimpl
from mplang_core.plugins.manager import PluginManager, PluginRecord, plugin_manager

__all__ = [
    "Check",
    "Dialect",
    "KernelSpec",
    "PluginManager",
    "PluginRecord",
    "hookimpl",
    "plugin_manager",
]

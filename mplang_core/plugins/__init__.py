"""Plugins: found through entry points, described by hooks, loaded when they are needed."""

from mplang_core.plugins.hookspecs import (
    Check as Check,
    Dialect as Dialect,
    KernelSpec as KernelSpec,
    hookimpl as hookimpl,
)
from mplang_core.plugins.manager import (
    PluginRecord as PluginRecord,
    plugin_manager as plugin_manager,
)

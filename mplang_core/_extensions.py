"""Names of ``mp`` from other packages: entry points and backends."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from mplang_core.errors import MissingPackageError
from mplang_core.plugins import plugin_manager
from mplang_core.plugins.manager import API
from mplang_core.simp.backend import backends, get_backend
from mplang_core.suggest import KNOWN


def names() -> list[str]:
    """Return the installed names; import nothing."""
    return [*plugin_manager.names(API), *(name.capitalize() for name in backends.known())]


def find(name: str) -> Any:
    """Return the object of a name, ``None`` if no package provides it.

    Raises:
        MissingPackageError: its package is one of mplang, and not installed or to be imported.
        PluginLoadError: its package did not load.
    """
    if name[:1].isupper() and (name.lower() in backends or name == "Simulator"):
        return get_backend(name.lower()).host
    found = None if name.startswith("_") else plugin_manager.entry(API, name)
    if found is None and name in KNOWN:
        module = KNOWN[name].replace("-", "_")
        how = f"import {module}" if find_spec(module) else f"pip install {KNOWN[name]}"
        raise MissingPackageError(f"mp.{name} comes with another package; try: {how}")
    return found

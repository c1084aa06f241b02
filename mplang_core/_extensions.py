"""Names of ``mp`` that other packages bring, by entry points or as backends."""

from __future__ import annotations

from typing import Any

from mplang_core.errors import MissingPackageError
from mplang_core.plugins import plugin_manager
from mplang_core.plugins.manager import API
from mplang_core.simp.backend import backends, get_backend
from mplang_core.suggest import KNOWN


def names() -> list[str]:
    """Return the names that are installed; imports nothing."""
    return [*plugin_manager.names(API), *(name.capitalize() for name in backends.known())]


def find(name: str) -> Any:
    """Return what has a name; ``None`` if it is nobody's.

    Raises:
        MissingPackageError: a package of mplang that is not installed brings it.
        PluginLoadError: its package failed.
    """
    if name[:1].isupper() and (name.lower() in backends or name == "Simulator"):
        return get_backend(name.lower()).host
    found = None if name.startswith("_") else plugin_manager.entry(API, name)
    if found is None and name in KNOWN:
        raise MissingPackageError(
            f"mp.{name} comes with a package of its own; try: pip install {KNOWN[name]}"
        )
    return found

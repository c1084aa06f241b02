"""Plugins that a worker imports: their versions, and the restriction to some of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from importlib_metadata import requires
from mplang_http.ext import USED, installed

from mplang_core.ext import (
    BACKENDS,
    SECTIONS,
    WORKERS,
    PluginLoadError,
    PluginVersionError,
    plugin_manager,
)

IMPORTED = (*USED, "mplang.sources", "mplang.admission", "mplang.native", "mplang.words")
"""Groups that a worker imports; those that are its owner's alone need not be alike."""


def installed_plugins() -> dict[str, str]:
    """Return the versions of the packages whose plugins a worker could import."""
    return dict(sorted(installed(IMPORTED).items()))


def check(wanted: Mapping[str, str]) -> None:
    """Check that plugins are installed in some versions; import nothing.

    Args:
        wanted: version by package.

    Raises:
        PluginLoadError: one is not installed, or needs another plugin that is not wanted.
        PluginVersionError: one is installed in another version.
    """
    found, imported = installed((*IMPORTED, BACKENDS, SECTIONS, WORKERS)), installed(IMPORTED)
    for package, needed in wanted.items():
        if package not in found:
            known = ", ".join(f"{name} {imported[name]}" for name in sorted(imported))
            raise PluginLoadError(f"no plugin of {package} is installed; there are {known}")
        if (here := found[package]) != needed:
            raise PluginVersionError(
                f"{package} {here} is installed, not {needed}; pip install '{package}=={needed}', "
                f"or list {here}, as all workers do"
            )
        for name in sorted(set(_needs(package)) & imported.keys() - wanted.keys()):
            raise PluginLoadError(
                f"{package} needs {name} {found[name]}, which is not listed; list it, too"
            )


def restrict(allowed: Mapping[str, str]) -> None:
    """Restrict the plugins that this process may load to these; import nothing.

    Args:
        allowed: version by package.

    Raises:
        PluginLoadError: one is not installed, or another one is loaded already.
        PluginVersionError: one is installed in another version.
    """
    check(allowed)
    for record in plugin_manager.records():
        if record.distribution in allowed or record.status == "disabled":
            continue
        if record.group == SECTIONS:  # imported where the configuration has the section
            continue
        if record.status == "known":
            record.status, record.disabled_by = "disabled", "not among the allowed plugins"
        elif record.group in IMPORTED:
            raise PluginLoadError(f"{record.distribution} is loaded already, and not allowed")


def _needs(package: str) -> Iterator[str]:
    """Yield the packages that one requires, without those of its extras; skip invalid lines."""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import

    for text in requires(package) or ():
        with contextlib.suppress(InvalidRequirement):
            found = Requirement(text)
            if found.marker is None or found.marker.evaluate({"extra": ""}):
                yield found.name

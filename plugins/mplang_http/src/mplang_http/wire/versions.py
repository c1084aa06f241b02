"""Versions of this process that have to fit those of the other parties."""

from __future__ import annotations

import functools

from importlib_metadata import PackageNotFoundError, version

from mplang_core.ext import CORE
from mplang_http.base.plugin_versions import (
    OWN,
    Versions,
    compatible,
    installed,
    may_differ_here,
    pass_versions,
)
from mplang_http.wire.protocols import PROTOCOLS


def versions() -> dict[str, str]:
    """Return the versions that have to fit together at all parties that have them.

    They are those of the protocols, and, from package metadata, of the core, the engines, and all
    plugins that may be loaded. Some fit together though they differ, see :func:`compatible`.
    """
    found = {name: _version(name) for name in (CORE, *OWN, "jax", "spu")}
    there = {name: version for name, version in found.items() if version is not None}
    return PROTOCOLS | there | installed()


def own_versions() -> Versions:
    """Return what this process has, and which of it may differ from what others have."""
    return Versions(versions(), compatible(), may_differ_here(), pass_versions())


@functools.cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

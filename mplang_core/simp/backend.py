"""Backends by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mplang_core.edsl.context import Cluster
from mplang_core.errors import PluginLoadError
from mplang_core.hints import get_it
from mplang_core.namespace import Namespace
from mplang_core.simp.host import SimpHost

__all__ = ["BackendSpec", "backends", "connect", "get_backend"]


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A way to reach workers.

    Attributes:
        name: as in ``mp.connect(name, cluster)``.
        host: makes the host of a cluster, usually a class.
        doc: one line.
    """

    name: str
    host: Callable[..., SimpHost]
    doc: str = ""


backends: Namespace[BackendSpec] = Namespace("backend")
"""All backends by name."""


def get_backend(name: str) -> BackendSpec:
    """Return a backend.

    Raises:
        PluginLoadError: nothing that is installed provides it.
    """
    spec = backends.get(name)
    if spec is None:
        raise PluginLoadError(f"no backend {name!r}; {get_it(name, backends.known())}")
    return spec


def connect(backend: str, cluster: Cluster, **options: Any) -> SimpHost:
    """Return the host of a backend for a cluster.

    Args:
        backend: its name, such as ``"simulator"``.
        cluster: the parties and devices.
        **options: the backend's own.

    Raises:
        PluginLoadError: no such backend is installed.
    """
    return get_backend(backend).host(cluster, **options)

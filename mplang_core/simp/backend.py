"""Backends by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mplang_core.edsl.context import Cluster
from mplang_core.errors import ConfigError, PluginLoadError
from mplang_core.namespace import Namespace
from mplang_core.simp.host import SimpHost
from mplang_core.suggest import install_hint


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
        raise PluginLoadError(f"no backend {name!r}; {install_hint(name, backends.known())}")
    return spec


def connect(backend: str, cluster: Cluster, **options: Any) -> SimpHost:
    """Return the host of a backend for a cluster.

    Args:
        backend: its name, such as ``"simulator"``.
        cluster: the parties and devices.
        **options: the backend's own.

    Raises:
        PluginLoadError: no such backend is installed.
        ConfigError: it has no such option.
    """
    return make_host(backend, get_backend(backend).host, cluster, options)


def make_host(
    backend: str, host: Callable[..., SimpHost], cluster: Cluster, options: Mapping[str, Any]
) -> SimpHost:
    """Make a host with options that were checked to be its own.

    Raises:
        ConfigError: there is no such option; names those that there are.
    """
    signature = inspect.signature(host)
    known = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    try:
        signature.bind(cluster, **options)
    except TypeError as error:
        raise ConfigError(
            f"the backend {backend} has no such options: {error}; it takes {', '.join(known)}"
        ) from None
    return host(cluster, **options)

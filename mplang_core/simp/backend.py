"""Registry of backends, and construction of hosts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mplang_core.edsl.context import Cluster
from mplang_core.errors import ConfigError, PluginLoadError
from mplang_core.ir import Program
from mplang_core.namespace import Namespace
from mplang_core.simp.host import HostVar, SimpHost
from mplang_core.suggest import install_hint
from mplang_core.tracebacks import of_user

Rehearse: TypeAlias = Callable[[SimpHost, Program, Sequence[HostVar]], None]
"""``rehearse(host, program, inputs)`` runs a program of a host on made-up data; it tells, or raises
what goes wrong."""


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """Backend: a way to reach workers.

    Attributes:
        name: the name for ``mp.connect(name, cluster)``.
        host: ``host(cluster, **options)`` returns a host, usually a class.
        doc: one line for tools.
        rehearse: runs programs of other hosts on made-up data, for ``check=NAME``; ``None`` if it
            cannot.
    """

    name: str
    host: Callable[..., SimpHost]
    doc: str = ""
    rehearse: Rehearse | None = None


backends: Namespace[BackendSpec] = Namespace("backend")
"""Backends by name."""


def get_backend(name: str) -> BackendSpec:
    """Return a backend.

    Raises:
        PluginLoadError: no installed plugin provides it.
    """
    if (spec := backends.get(name)) is None:
        raise PluginLoadError(f"no backend {name!r}; {install_hint(name, backends.known())}")
    return spec


def rehearsal_of(name: Any) -> Rehearse:
    """Return how a backend rehearses programs.

    Raises:
        ConfigError: it does not.
        PluginLoadError: no installed plugin provides it.
    """
    is_backend = name == "simulator" or name in backends.known()
    found = get_backend(name).rehearse if is_backend else None
    if found is None:
        raise ConfigError(f"check is 'simulator' or None, got {name!r}", code="C002")
    return found


@of_user
def connect(backend: str, cluster: Cluster, **options: Any) -> SimpHost:
    """Return the host of a backend for a cluster.

    Args:
        backend: the name of the backend, such as ``"simulator"``.
        cluster: the parties and devices.
        **options: keyword arguments of the backend's host.

    Returns:
        The host; close it, or use it in ``with``.

    Raises:
        PluginLoadError: no such backend is installed.
        ConfigError: the backend has no such option, or an option is invalid.

    Example:
        >>> import mplang_core as mp
        >>> with mp.connect("simulator", mp.ClusterSpec.simple(2)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))
        [array(7), array(7)]
    """
    return make_host(backend, get_backend(backend).host, cluster, options)


def make_host(
    backend: str, host: Callable[..., SimpHost], cluster: Cluster, options: Mapping[str, Any]
) -> SimpHost:
    """Return a host; check the names of its options first.

    Args:
        backend: the name of the backend, for messages.
        host: the class of the host, or a function with the same signature.
        cluster: the parties and devices.
        options: keyword arguments of ``host``.

    Raises:
        ConfigError: there is no such option; the message lists the options.
    """
    signature = inspect.signature(host)
    known = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    try:
        signature.bind(cluster, **options)
    except TypeError as error:
        raise ConfigError(
            f"the backend {backend} has no such options: {error}; it takes {', '.join(known)}",
            code="C002",
        ) from None
    return host(cluster, **options)

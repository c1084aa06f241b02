"""Plugin hooks of the HTTP backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ext import BackendSpec, SimpHost, hookimpl, make_host


def _connect(cluster: Any, **options: Any) -> SimpHost:
    from mplang_http.coordinator.driver import SimpHttpDriver

    return make_host("http", SimpHttpDriver, cluster, options)


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Return the HTTP backend."""
    return [BackendSpec("http", _connect, "Workers in separate processes, one port each.")]

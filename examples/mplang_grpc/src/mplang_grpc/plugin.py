"""What mplang is told of this package; gRPC is imported when a host is made."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core import ClusterSpec
from mplang_core.ext import BackendSpec, Mode, SimpHost, hookimpl


def _connect(cluster: ClusterSpec, *, timeout: float = 60.0, mode: Mode = "launch") -> SimpHost:
    from mplang_grpc.driver import SimpGrpcDriver

    return SimpGrpcDriver(cluster, timeout=timeout, mode=mode)


@hookimpl
def mplang_backends() -> Sequence[BackendSpec]:
    """Provide the backend."""
    return [BackendSpec("grpc", _connect, "Workers over gRPC: an example, without TLS.")]

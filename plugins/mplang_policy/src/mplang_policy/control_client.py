"""Client of the control socket of a worker, which another package brings, if it is at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

from importlib_metadata import entry_points

from mplang_core.ext import ConfigError

GROUP = "mplang.control"


class WorkerControl(Protocol):
    """Client of the commands that a worker takes while it runs."""

    @property
    def is_at_hand(self) -> bool:
        """Whether a worker answers."""

    def request(self, method: str, *path: str, **query: str | None) -> Sequence[dict[str, object]]:
        """Send a request, and return the rows of its response, each a dict.

        Raises:
            RunError: no worker answers, or it refuses.
        """


def control_of(
    config: str, path: str | None, at: str | None, tls: str | None
) -> WorkerControl | None:
    """Return the client of a worker; ``None`` if none answers that the user has not named.

    Args:
        config: path of the worker's file, which may name its socket.
        path: path of the socket.
        at: name and address of a worker elsewhere.
        tls: certificate of the user, for that.

    Raises:
        ConfigError: the client that the user asks for cannot be made.
    """
    is_named = path is not None or at is not None
    make = _client()
    if make is None:
        if is_named:
            raise ConfigError("--socket and --at need mplang-http; install it", code="C014")
        return None
    try:
        client = make(config, path, at, tls)
    except ConfigError:
        if is_named:
            raise
        return None  # its file names no socket
    return client if is_named or client.is_at_hand else None


@functools.cache
def _client() -> Callable[..., WorkerControl] | None:
    return next((each.load() for each in entry_points(group=GROUP, name="client")), None)

"""Connections whose clients are not known yet: a pool, in which each address has a share."""

from __future__ import annotations

import asyncio


class UnknownClients:
    """Connections whose clients are not known yet: each address has a share of them.

    When there are too many, the oldest of the address that has the most is closed. So whoever
    connects many times, and says nothing, keeps nobody out: not those at other addresses, nor
    those at its own that say who they are at once.

    Args:
        limit: maximum number of connections.

    Example:
        >>> UnknownClients(100).limit
        100
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._by_host: dict[str, dict[asyncio.Task[None], None]] = {}
        self._count = 0

    def add(self, host: str, task: asyncio.Task[None]) -> None:
        """Add a connection, until its task ends; close another one if there are too many.

        Args:
            host: address of the client.
            task: the task that finds out who the client is.
        """
        self._by_host.setdefault(host, {})[task] = None
        self._count += 1
        task.add_done_callback(lambda task: self._remove(host, task))
        if self._count > self.limit:
            most = max(self._by_host, key=lambda each: len(self._by_host[each]))
            oldest = next(iter(self._by_host[most]))
            self._remove(most, oldest)
            oldest.cancel()

    def _remove(self, host: str, task: asyncio.Task[None]) -> None:
        tasks = self._by_host.get(host, {})
        if tasks.pop(task, self) is None:
            self._count -= 1
        if not tasks:
            self._by_host.pop(host, None)

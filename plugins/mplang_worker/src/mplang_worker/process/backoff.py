"""Back-off: how long to wait before a process that ended is started again."""

from __future__ import annotations

import time

FIRST, LAST = 0.5, 30.0  # seconds
HEALTHY = 60.0  # seconds that a process lives to count as one that works


class Backoff:
    """Delays of a process that ends again and again: none at first, then ever longer ones.

    Args:
        healthy: seconds; after one that lived longer the delays start anew.

    Example:
        >>> backoff = Backoff()
        >>> [backoff.ended() for _ in range(4)]
        [0.0, 0.5, 1.0, 2.0]
    """

    def __init__(self, healthy: float = HEALTHY) -> None:
        self._healthy = healthy
        self._count = 0
        self._begun: float | None = None

    def begun(self) -> None:
        """Record that the process works from now on."""
        self._begun = time.monotonic()

    def ended(self) -> float:
        """Record that it ended, or did not start.

        Returns:
            Seconds to wait before the next one.
        """
        if self._begun is not None and time.monotonic() - self._begun >= self._healthy:
            self._count = 0
        self._begun = None
        delay = 0.0 if self._count == 0 else min(FIRST * 2.0 ** (self._count - 1), LAST)
        self._count = min(self._count + 1, 16)
        return delay

    def reset(self) -> None:
        """Start the delays anew."""
        self._count = 0

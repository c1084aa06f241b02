"""Waiting of one thread for one thing, so that nobody else is woken for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

NOTHING: Any = object()


class Waiter:
    """A thread that waits: it sleeps, or reads what it waits for from a connection itself.

    Attributes:
        woken: whether what it waits for is there, or will not come.
        message: what has come for it; ``NOTHING`` before.
        interrupt: ends the thread's reading, while it reads.
    """

    __slots__ = ("_asleep", "interrupt", "message", "woken")

    def __init__(self) -> None:
        self.woken = False
        self.message = NOTHING
        self.interrupt: Callable[[], None] | None = None
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def wake(self) -> None:
        """End the waiting."""
        self.woken = True  # before the look at what it does: it looks in the other order
        interrupt = self.interrupt
        if interrupt is not None:
            interrupt()
        else:
            self.nudge()

    def nudge(self) -> None:
        """End the sleep, or else the next one; the thread looks around, and may sleep again."""
        try:  # noqa: SIM105 (half the time of a context manager)
            self._asleep.release()
        except RuntimeError:  # it was nudged already
            pass

    def sleep(self, deadline: float) -> None:
        """Sleep until the thread is woken or nudged, or ``time.monotonic()`` is ``deadline``."""
        left = deadline - time.monotonic()
        if left > 0:
            self._asleep.acquire(timeout=min(left, threading.TIMEOUT_MAX))

"""Quota of a worker's own log: how many bytes of it each coordinator may cause in a day."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from mplang_core.ext import DAY
from mplang_worker.base.logs import log_cause

STRANGERS = "clients that are not known"
log = logging.getLogger("mplang.http.front")


class LogQuota:
    """Bytes of a worker's own log that each coordinator has caused since midnight, UTC.

    What its engines print counts, and what the front logs of its requests. All clients without a
    certificate together are ``STRANGERS``. Safe for threads.

    Args:
        most: bytes that a coordinator may cause in a day.
        clock: returns the time, in seconds since 1970.

    Example:
        >>> quota = LogQuota(10)
        >>> [quota.take("host", 8), quota.take("host", 8), quota.take("other", 8)]
        [True, False, True]
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._day = 0
        self._used = Counter[str]()
        self._lock = threading.Lock()

    def set_limit(self, most: int) -> None:
        """Set another limit.

        Args:
            most: bytes that a coordinator may cause in a day.
        """
        self._most = most

    def take(self, cause: str, size: int) -> bool:
        """Count a line of the log, and return whether it may be written.

        The first one of a day that may not be is replaced by one that says so.

        Args:
            cause: the coordinator.
            size: bytes of the line.
        """
        day = int(self._clock() // DAY)
        with self._lock:
            if day != self._day:
                self._day, self._used = day, Counter()
            before = self._used[cause]
            self._used[cause] += size
        if before + size <= self._most:
            return True
        if before <= self._most:
            with log_cause(None):
                log.warning(
                    "%s has caused %d bytes of this log since 00:00 UTC, of at most %d in a day "
                    "(quotas.log); the other lines of this day are left out",
                    cause, before, self._most,
                )  # fmt: skip
        return False

"""Quota of a coordinator: how much it may have written into an owner's log in a day."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from mplang_core.ext import AdmissionError

DAY = 86_400.0  # seconds


class Quota:
    """Entries that each coordinator has caused today. Safe for threads.

    A log that cannot be written stops everybody, so nobody may fill the disk with refusals.

    Args:
        party: name of the party.
        most: how many there may be in a day.
        clock: returns the time, in seconds since 1970.
    """

    def __init__(self, party: str, most: int, clock: Callable[[], float]) -> None:
        self._party, self._most, self._clock = party, most, clock
        self._day = 0
        self._counts = Counter[str]()
        self._lock = threading.Lock()

    def take(self, coordinator: str) -> None:
        """Count an entry.

        Args:
            coordinator: who causes it.

        Raises:
            AdmissionError: the coordinator has caused as many as there may be in a day.
        """
        day = int(self._clock() // DAY)
        with self._lock:
            if day != self._day:
                self._day, self._counts = day, Counter()
            if self._counts[coordinator] >= self._most:
                raise AdmissionError(
                    f"{self._party} has {self._most} entries of {coordinator} on record today, "
                    "which is all that its owner allows"
                )
            self._counts[coordinator] += 1

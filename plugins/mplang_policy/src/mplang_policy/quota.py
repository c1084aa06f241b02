"""Quota of a coordinator: how much it may have written into an owner's log in a day."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mplang_core.ext import DAY


class Used(NamedTuple):
    """Amounts that a coordinator has used, or may use, of a log.

    Attributes:
        entries: number of entries.
        bytes: bytes of these and of what they speak of.
    """

    entries: int = 0
    bytes: int = 0

    def plus(self, other: Used) -> Used:
        """Return both together."""
        return Used(self.entries + other.entries, self.bytes + other.bytes)


ENTRY = Used(entries=1)


class Quota:
    """Quota of log entries by coordinator since midnight, UTC. Safe for threads.

    A log that cannot be written stops everybody, so nobody may fill the disk, with refusals or
    with runs.

    Args:
        party: name of the party.
        most: what a coordinator may cause in a day.
        clock: returns the time, in seconds since 1970.
        written: returns what each coordinator has caused since a time, by the log itself.
    """

    def __init__(
        self,
        party: str,
        most: Used,
        clock: Callable[[], float],
        written: Callable[[float], Mapping[str, Used]],
    ) -> None:
        self._party, self._most, self._clock = party, most, clock
        self._day = int(clock() // DAY)
        self._used = dict(written(self._day * DAY))
        self._refused: set[str] = set()  # coordinators that have been refused today
        self._lock = threading.Lock()

    def refusal(self, coordinator: str, more: Used = ENTRY) -> str:
        """Return why a coordinator may cause no more today; empty if it may.

        Args:
            coordinator: who causes it.
            more: what it would cause now.
        """
        with self._lock:
            used = self._today(coordinator)
        together = used.plus(more)
        for name, was, would, most in zip(Used._fields, used, together, self._most, strict=True):
            if would > most:
                since = time.strftime("%Y-%m-%d", time.gmtime(self._day * DAY))
                return (
                    f"{self._party} does nothing more for {coordinator} today: its log has {was} "
                    f"{name} of it since {since} 00:00 UTC, and {would - was} more pass the "
                    f"{most} that its owner allows in a day (gate.{name}); wait for the next day, "
                    f"or ask the owner of {self._party} to raise gate.{name}"
                )
        return ""

    def set_limit(self, most: Used) -> None:
        """Set another limit.

        Args:
            most: what a coordinator may cause in a day.
        """
        self._most = most

    def count(self, coordinator: str, more: Used) -> None:
        """Count what a coordinator has caused."""
        with self._lock:
            self._used[coordinator] = self._today(coordinator).plus(more)

    def is_first(self, coordinator: str) -> bool:
        """Return whether a coordinator is refused for the first time today, and remember it."""
        with self._lock:
            self._today(coordinator)
            first = coordinator not in self._refused
            self._refused.add(coordinator)
            return first

    def _today(self, coordinator: str) -> Used:
        day = int(self._clock() // DAY)
        if day != self._day:
            self._day, self._used, self._refused = day, {}, set()
        return self._used.get(coordinator, Used())

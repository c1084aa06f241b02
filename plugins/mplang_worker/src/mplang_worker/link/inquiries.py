"""Inquiries among parties whether they are at work in a run, as one waits for a message.

An inquiry is the end (``CLOSE``) of what is not a run, ``run?number``. Who works in that run
confirms it (``CLOSED``), as the end of a run is confirmed; who waits for another party asks that
one, and confirms when it does. So parties that wait for each other get no answer. It tells a peer
that the run goes on, and not which op; and not more often than each ``interval`` seconds.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

SIGN = "?"


def run_of(name: str) -> str:
    """Return the run that an inquiry is about; nothing for the name of a run.

    Example:
        >>> run_of("a12b?7"), run_of("a12b")
        ('a12b', '')
    """
    run, sign, _ = name.partition(SIGN)
    return run if sign else ""


class Inquiries:
    """Inquiries of one run at one party: at most one by each peer, and one to each.

    Args:
        run: name of the run on links.
        interval: seconds between two answers to one peer, and two inquiries to it.
    """

    def __init__(self, run: str, interval: float) -> None:
        self._run, self._interval = run, interval
        # to peers, by rank: its name, nothing once it is confirmed; and when it was made last
        self._mine: dict[int, tuple[str, float]] = {}
        self._pending: dict[int, str] = {}  # of peers, by rank
        self._answered: dict[int, float] = {}  # when, by rank

    def make(self, rank: int) -> str:
        """Return the name of an inquiry to a peer; nothing if it was asked a moment ago.

        One that is not confirmed is made again: with a new name the answer to the one before would
        not be known, and where two parties ask in step that is so each time.
        """
        now = time.monotonic()
        name, asked = self._mine.get(rank, ("", -self._interval))
        if now - asked < self._interval:
            return ""
        name = name or f"{self._run}{SIGN}{secrets.token_hex(8)}"
        self._mine[rank] = name, now
        return name

    def take(self, rank: int, name: str, waits_for: Iterable[int] | None) -> bool:
        """Take in an inquiry; return whether it is to be confirmed now.

        Args:
            rank: who asks.
            name: its name.
            waits_for: whom this party waits for; ``None`` if it is not in the run.
        """
        now = time.monotonic()
        if waits_for is None or now - self._answered.get(rank, -self._interval) < self._interval:
            return False
        if waits_for:
            self._pending[rank] = name
            return False
        self._answered[rank] = now
        return True

    def confirm(self, rank: int, name: str) -> dict[int, str] | None:
        """Take in a confirmation; return the inquiries that it confirms here, by rank.

        Args:
            rank: who confirms.
            name: the inquiry to it.

        Returns:
            Those of peers; ``None`` if this party has not asked.
        """
        mine, asked = self._mine.get(rank, ("", 0.0))
        if mine != name:
            return None
        self._mine[rank] = "", asked
        confirmed, self._pending = self._pending, {}
        self._answered |= dict.fromkeys(confirmed, time.monotonic())
        return confirmed

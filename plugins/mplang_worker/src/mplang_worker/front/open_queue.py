"""Queue of sessions that are to be opened: a few start at a time, in fair shares."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from mplang_worker.base.errors import RequestError
from mplang_worker.front.session import Key

WAIT = 1.0  # seconds that a request waits for its turn before it learns its place
STEP = 0.05  # seconds between two looks at the queue
EXPIRY = 20.0  # seconds after which a session whose coordinator asks no more is dropped


@dataclass(slots=True)
class _Waiting:
    may_open: Callable[[], bool]
    seen: float = field(default_factory=time.monotonic)


class OpenQueue:
    """Sessions that wait for the start of their processes.

    Starts are work for a machine: where all begin at once, none is ready in time. So a few start at
    a time, and coordinators take turns, whatever number of sessions each of them opens.

    Args:
        at_once: how many start at a time; by default as many as there are cores, and at least two.

    Example:
        >>> queue = OpenQueue(at_once=1)
        >>> asyncio.run(queue.enter(("ann", "s"), lambda: True))
        >>> queue.leave(("ann", "s"))
    """

    def __init__(self, at_once: int | None = None) -> None:
        self._at_once = at_once or max(2, len(os.sched_getaffinity(0)))
        self._waiting: dict[Key, _Waiting] = {}
        self._starting: set[Key] = set()

    def __len__(self) -> int:
        """Number of sessions that wait."""
        return len(self._waiting)

    def waiting(self, coordinator: str) -> int:
        """Return how many sessions of a coordinator wait."""
        return sum(key[0] == coordinator for key in self._waiting)

    async def enter(self, key: Key, may_open: Callable[[], bool]) -> None:
        """Wait for the turn of a session, which :meth:`leave` ends.

        Args:
            key: coordinator and name of the session.
            may_open: returns whether it may be opened now, beside its turn.

        Raises:
            RequestError: it is not its turn yet; the text has its place, which it keeps.
        """
        deadline = time.monotonic() + WAIT
        while True:
            # again, as another request for it may have had its turn
            waiting = self._waiting.setdefault(key, _Waiting(may_open))
            waiting.seen = time.monotonic()
            if self._is_next(key):
                break
            if waiting.seen >= deadline:
                position = self._order().index(key) + 1
                raise RequestError(
                    503,
                    "queued",
                    f"this session is number {position} of {len(self._waiting)} that wait here to "
                    "be opened; ask again",
                )
            await asyncio.sleep(STEP)
        self._waiting.pop(key, None)
        self._starting.add(key)

    def leave(self, key: Key) -> None:
        """Release the turn of a session, which has started or does not."""
        self._starting.discard(key)

    def _is_next(self, key: Key) -> bool:
        if key in self._starting:
            return True
        free = self._at_once - len(self._starting)
        ready = [each for each in self._order() if self._waiting[each].may_open()]
        return key in ready[: max(free, 0)]

    def _order(self) -> list[Key]:
        """Return those that wait: each coordinator's first before any one's second."""
        now = time.monotonic()
        for key in [k for k, each in self._waiting.items() if now - each.seen > EXPIRY]:
            del self._waiting[key]
        turns = Counter(coordinator for coordinator, _ in self._starting)
        ranked = []
        for key in self._waiting:
            ranked.append((turns[key[0]], key))
            turns[key[0]] += 1
        ranked.sort(key=lambda each: each[0])  # stable, so by arrival within a turn
        return [key for _, key in ranked]

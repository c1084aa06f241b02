"""Waiting in tests: for a condition, with one deadline that a busy machine meets, too.

A test that waits for a duration fails by chance::

    from mplang_testing.waiting import DEADLINE, in_time, wait_until

    wait_until(lambda: server.requests == 3)  # not: sleep, then assert
    assert future.result(DEADLINE) == 5       # not: a deadline for this line alone
    with in_time():                           # not: assert took < 1
        server.close()

A timeout of the product that must not be what ended such a block is :data:`NEVER`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = [
    "DEADLINE",
    "NEVER",
    "in_time",
    "pause",
    "pause_async",
    "stays",
    "stays_async",
    "wait_until",
    "wait_until_async",
]

T = TypeVar("T")

DEADLINE = 60.0
"""Maximum time in seconds that a test waits for anything."""

NEVER = 600.0
"""A timeout in seconds that no test reaches: what ends before :data:`DEADLINE` ended otherwise."""

_INTERVAL = 0.01  # seconds between two calls of a condition


def wait_until(condition: Callable[[], T], what: str = "the condition") -> T:
    """Return the first true value of a condition, which is called every 10 ms.

    Raises:
        AssertionError: the condition, named by ``what``, is not true in :data:`DEADLINE` seconds.

    Example:
        >>> ready = iter([False, False, "ready"])
        >>> wait_until(lambda: next(ready))
        'ready'
    """
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} is not true after {DEADLINE:g} s"
        time.sleep(_INTERVAL)
    return value


async def wait_until_async(condition: Callable[[], T], what: str = "the condition") -> T:
    """Return the first true value of a condition, as :func:`wait_until`, while other tasks run."""
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} is not true after {DEADLINE:g} s"
        await asyncio.sleep(_INTERVAL)
    return value


def stays(condition: Callable[[], object], seconds: float = 0.3) -> None:
    """Assert that a condition stays true for a time.

    A slow machine calls it less often: it may then miss a fault, and never reports one by chance.
    Where something tells that the fault has had its turn, :func:`wait_until` that instead.

    Raises:
        AssertionError: the condition is false.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), "the condition does not stay true"
        time.sleep(_INTERVAL)


async def stays_async(condition: Callable[[], object], seconds: float = 0.3) -> None:
    """Assert that a condition stays true for a time, as :func:`stays`, while other tasks run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), "the condition does not stay true"
        await asyncio.sleep(_INTERVAL)


def pause(seconds: float, why: str) -> None:
    """Sleep, in what plays a part: slow code, a slow peer, a fault that comes at a random moment.

    No assertion may depend on how long it really takes; ``why`` tells the reader what it plays.
    """
    assert why
    time.sleep(seconds)


async def pause_async(seconds: float, why: str) -> None:
    """Sleep, as :func:`pause`; other tasks run meanwhile."""
    assert why
    await asyncio.sleep(seconds)


@contextmanager
def in_time() -> Iterator[None]:
    """Assert that a block ends within :data:`DEADLINE` seconds.

    Raises:
        AssertionError: it took longer.
    """
    begin = time.monotonic()
    yield
    took = time.monotonic() - begin
    assert took < DEADLINE, f"this took {took:.0f} s, at most {DEADLINE:g} s were expected"

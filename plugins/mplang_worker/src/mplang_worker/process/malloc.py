"""Malloc of glibc: how many arenas a process has, and that what was freed goes back.

References:
    mallopt(3), "M_ARENA_MAX"; malloc_trim(3).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes

M_ARENA_MAX = -8
ARENAS = 2  # the main one, and one that all threads share
INTERVAL = 60.0  # seconds between two times that freed memory is given back


def share_arenas() -> None:
    """Limit the arenas of this process, each of which keeps megabytes that were freed.

    By default there are eight for each core, so that a front of many threads grows with the cores
    of its machine. Call it before threads are started; malloc of another library ignores it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give pages that are free, between others that are not, back to the system.

    Malloc by itself gives back those at the end alone, and a process that runs for months keeps
    ever more. It takes a fraction of a millisecond; malloc of another library ignores it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def keep_giving_back() -> None:
    """Give back what is free, again and again; for good."""
    while True:
        await asyncio.sleep(INTERVAL)
        give_back()

"""Arenas of glibc's malloc: how many a process has.

Reference:
    mallopt(3), "M_ARENA_MAX".
"""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
ARENAS = 2  # the main one, and one that all threads share


def share_arenas() -> None:
    """Limit the arenas of this process, each of which keeps megabytes that were freed.

    By default there are eight for each core, so that a front of many threads grows with the cores
    of its machine. Call it before threads are started; malloc of another library ignores it.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)

"""Name of a process, as ps and top show it."""

from __future__ import annotations

import ctypes

PR_SET_NAME = 15


def name_process(name: str) -> None:
    """Name this process.

    Args:
        name: at most 15 characters.
    """
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)

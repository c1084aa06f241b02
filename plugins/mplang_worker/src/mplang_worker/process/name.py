"""Name and priority of a process, as ps and top show them."""

from __future__ import annotations

import ctypes

PR_SET_NAME = 15
NICE = 5  # of what sessions run, below the front, which says that the worker lives


def name_process(name: str) -> None:
    """Name this process.

    Args:
        name: at most 15 characters.
    """
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)

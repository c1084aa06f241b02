"""Processes of a worker: the front, the warm process that it keeps, and an engine per session."""

from __future__ import annotations

import time
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the process IDs of a process's children."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(found) for each in tasks for found in each.read_text().split()]


def descendants(pid: int) -> list[int]:
    """Return the process IDs of all processes below one."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def fork_server_of(front: int) -> int:
    """Return the process ID of the warm process, the only child of a front."""
    (pid,) = children(front)
    return pid


def engines_of(front: int) -> list[int]:
    """Return the process IDs of the engines of a front, one per session."""
    return children(fork_server_of(front))


def engine_of(front: int) -> int:
    """Return the process ID of the only engine of a front.

    The kernel's list of children may lack one while another ends.
    """
    deadline = time.monotonic() + 5
    while len(found := engines_of(front)) != 1:
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found[0]

"""Processes of a worker: the front, the fork server that it keeps, and the engine."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the process IDs of a process's children."""
    return [int(found) for found in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid: int) -> list[int]:
    """Return the process IDs of all processes below one."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def fork_server_of(front: int) -> int:
    """Return the process ID of the fork server, the only child of a front."""
    (pid,) = children(front)
    return pid


def engine_of(front: int) -> int:
    """Return the process ID of the engine of a front."""
    (pid,) = children(fork_server_of(front))
    return pid

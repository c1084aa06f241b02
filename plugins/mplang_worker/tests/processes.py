"""Processes of a worker: the front, the warm process that it keeps, and those of each session."""

from __future__ import annotations

import contextlib
from pathlib import Path

from mplang_testing.waiting import wait_until


def children(pid: int) -> list[int]:
    """Return the process IDs of a process's children, the oldest first.

    The kernel's own list of children may lack one while another ends.
    """
    every = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    found = [
        (begun, each) for each in every for parent, begun in parent_and_begin(each) if parent == pid
    ]
    return [each for _, each in sorted(found)]


def parent_and_begin(pid: int) -> list[tuple[int, int]]:
    """Return a process's parent and when it began; nothing if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    fields = text.rpartition(")")[2].split()  # before it is its name, which may be any text
    return [(int(fields[1]), int(fields[19]))]


def descendants(pid: int) -> list[int]:
    """Return the process IDs of all processes below one."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def fork_server_of(front: int) -> int:
    """Return the process ID of the warm process, the only child of a front beside its readers."""

    def others():
        return _only([pid for pid in children(front) if _comm(pid) != "mplang-sources"])

    (pid,) = wait_until(others, "a front has one child")
    return pid


def processes_of_sessions(front: int) -> list[int]:
    """Return the process IDs of all processes of a front's sessions."""
    return _named(front, "mplang-engine", "mplang-mpc", "mplang-checker")


def spares_of(front: int) -> list[int]:
    """Return the process IDs of those that wait for what they are to run."""
    return _named(front, "mplang-spare")


def engines_of(front: int) -> list[int]:
    """Return the process IDs of the engines of a front, one per session."""
    return _named(front, "mplang-engine")


def mpc_processes_of(front: int) -> list[int]:
    """Return the process IDs of the MPC processes of a front, at most one per session."""
    return _named(front, "mplang-mpc")


def mpc_process_of(front: int) -> int:
    """Return the process ID of the only MPC process of a front; others may be ending."""
    (pid,) = wait_until(lambda: _only(mpc_processes_of(front)), "a front has one MPC process")
    return pid


def _named(front: int, *names: str) -> list[int]:
    """Return those of the children of a front's warm process that have one of the names."""
    return children_named(fork_server_of(front), *names)


def readers_of(front: int) -> list[int]:
    """Return the process IDs of those that read sources for a front now, or are about to end."""
    servers = children_named(front, "mplang-sources")
    return [pid for server in servers for pid in children_named(server, "mplang-sources")]


def children_named(pid: int, *names: str) -> list[int]:
    """Return the process IDs of those of a process's children that have one of the names."""
    return [each for each in children(pid) if _comm(each) in names]


def _comm(pid: int) -> str:
    """Return the name of a process; none of one that has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def engine_of(front: int) -> int:
    """Return the process ID of the only engine of a front; others may be ending."""
    (pid,) = wait_until(lambda: _only(engines_of(front)), "a front has one engine")
    return pid


def _only(found: list[int]) -> list[int]:
    return found if len(found) == 1 else []

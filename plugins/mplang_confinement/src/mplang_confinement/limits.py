"""Limits of memory, files, CPU time and cores of a process."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path


def set_limits(
    *,
    memory: int,
    files: int,
    cpu: int | None = None,
    written: int | None = None,
    cores: Sequence[int] = (),
) -> None:
    """Limit what this process uses.

    Args:
        memory: bytes of data and stacks, in addition to what the process has already.
        files: open files.
        cpu: seconds of CPU time, in addition to what it has used; any if ``None``.
        written: bytes of a file that it writes; any if ``None``.
        cores: the cores; all if there are none.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stacks
    _lower(resource.RLIMIT_DATA, pages * resource.getpagesize() + memory)
    _lower(resource.RLIMIT_NOFILE, files)
    if cpu is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, cpu + int(used.ru_utime + used.ru_stime))
    if written is not None:
        _lower(resource.RLIMIT_FSIZE, written)
    if cores:
        os.sched_setaffinity(0, cores)


def _lower(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(what, (limit, limit))

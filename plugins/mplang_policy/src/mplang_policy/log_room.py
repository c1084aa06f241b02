"""Room for a log: whether the disk that it is on takes more entries."""

from __future__ import annotations

import os

ROOM = 16 << 20  # bytes that the disk has left, or entries will not fit soon


def shortage(path: str) -> str:
    """Return why the log of a gate takes no more entries soon; empty if there is room.

    Args:
        path: path of the log.
    """
    try:
        system = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        return f"the folder of the log {path}: {error.strerror}"
    if system.f_flag & os.ST_RDONLY:
        return f"the log {path} is on a read-only file system"
    free = system.f_bavail * system.f_frsize
    return "" if free >= ROOM else f"the disk of the log {path} has {free} bytes left"

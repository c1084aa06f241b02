"""Memory files that an engine was given, for as long as it has them.

What it keeps open, maps and never touches, or has on its way to itself counts in no process, and in
no cgroup of it: the process that wrote the file has ended.
"""

from __future__ import annotations

import errno
import fcntl
import os

LEAST = 1 << 20  # bytes of a file that is counted: smaller ones are not worth a descriptor


class AnsweredFiles:
    """Memory files that were given away.

    Example:
        >>> given, made = AnsweredFiles(), os.memfd_create("rows")
        >>> os.ftruncate(made, LEAST)
        >>> file = os.open(f"/proc/self/fd/{made}", os.O_RDONLY)
        >>> os.close(made)
        >>> given.note(file)
        >>> given.size() == LEAST
        True
        >>> os.close(file)
        >>> given.size()
        0
    """

    def __init__(self) -> None:
        self._ours: dict[int, int] = {}  # sizes in bytes, by a descriptor that nobody else has
        self._closed = False

    def note(self, file: int) -> None:
        """Count a file that is about to be given away, if it is in memory.

        Args:
            file: its descriptor, opened for reading alone, which the caller closes. That of whoever
                made a memory file is in no count of the kernel.
        """
        about = os.fstat(file)
        if not self._closed and not about.st_nlink and about.st_size >= LEAST:
            ours = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
            self._ours[ours] = about.st_size

    def size(self) -> int:
        """Return the bytes of those that others still have."""
        for ours in [each for each in self._ours if _is_nobody_elses(each)]:
            del self._ours[ours]
            os.close(ours)
        return sum(self._ours.values())

    def close(self) -> None:
        """Forget all of them, and those that come late."""
        self._closed = True
        for ours in self._ours:
            os.close(ours)
        self._ours.clear()


def _is_nobody_elses(file: int) -> bool:
    """Return whether nobody else has a file open or mapped: only then it can be leased whole."""
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True

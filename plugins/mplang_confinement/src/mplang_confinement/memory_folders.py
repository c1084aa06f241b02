"""Folders in memory of processes, each of which has one of its own: made, kept apart, and removed.

Who starts the processes has one folder for all of them, which it locks; whoever starts some later
removes what one has left that ended by force.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
PREFIX = "mplang-processes-"


class MemoryFolders:
    """Folders in memory of the processes that this one starts.

    Example:
        >>> folders = MemoryFolders()
        >>> folders.of("matching") == (folders.path and f"{folders.path}/matching")
        True
        >>> folders.close()

    Attributes:
        path: the folder that has them; empty where the system has none in memory.
    """

    def __init__(self) -> None:
        self.path = ""
        self._lock: int | None = None
        if not os.access(MEMORY, os.W_OK):
            return
        _remove_left()
        while self._lock is None:  # another process may take a new one for one that was left
            self.path = tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY)
            self._lock = _locked(self.path)

    def of(self, name: str) -> str:
        """Return the path of the folder of a process, which it makes; empty where there are none.

        Args:
            name: a name of letters and digits that no other has.
        """
        return os.path.join(self.path, name) if self.path else ""

    def remove(self, name: str) -> None:
        """Remove the folder of a process that has ended, if it has made it."""
        if self.path:
            shutil.rmtree(self.of(name), ignore_errors=True)

    def close(self) -> None:
        """Remove all, once the processes have ended."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock, self.path = None, ""


def _locked(path: str | Path) -> int | None:
    """Return the descriptor of a folder that this process has locked.

    Returns:
        ``None`` if another process has it, or has removed it.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(number), os.stat(path)):
            return number
    except OSError:
        pass
    os.close(number)
    return None


def _remove_left() -> None:
    """Remove folders of processes of this user that have ended."""
    for each in MEMORY.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another one removes it, or it is another user's
            number = _locked(each) if each.stat().st_uid == os.getuid() else None
            if number is not None:
                shutil.rmtree(each, ignore_errors=True)
                os.close(number)

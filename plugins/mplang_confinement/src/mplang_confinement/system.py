"""The C library, which has the system calls by which a process gives something up."""

from __future__ import annotations

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Return the result of a system call.

    Raises:
        OSError: the kernel refuses.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

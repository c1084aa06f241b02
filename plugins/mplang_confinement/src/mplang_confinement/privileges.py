"""Privileges that a process gives up, and its memory, which others do not read.

References:
    Linux: capabilities(7), PR_SET_DUMPABLE and PR_SET_NO_NEW_PRIVS in prctl(2).
"""

from __future__ import annotations

import contextlib
import resource
import struct
from pathlib import Path

from mplang_confinement.system import checked, libc

PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38


def give_up_privileges() -> None:
    """Drop capabilities, new privileges, and read access by other processes of the user.

    Raises:
        OSError: the kernel refuses.
    """
    hide_memory()
    with contextlib.suppress(OSError):  # the kernel ends engines first when memory is short
        Path("/proc/self/oom_score_adj").write_text("1000")
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    checked(libc.capset(header, bytes(24)))


def hide_memory() -> None:
    """Disable core dumps and ptrace access for this process."""
    checked(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

"""Confinement of processes: what one that works on what strangers made cannot do, whatever it is.

A process gives up privileges, then files (Landlock), sets its limits, and gives up the system calls
that reach other processes or the network (seccomp), in this order, for good. Where the kernel has
no Landlock, or the machine is not known, it keeps files, or calls; ``mplang doctor`` tells.
"""

from mplang_confinement.landlock import (
    PROGRAMS,
    give_up_files,
    give_up_writing,
    landlock_version,
    make_ruleset,
)
from mplang_confinement.limits import set_limits
from mplang_confinement.memory_folders import MemoryFolders
from mplang_confinement.privileges import give_up_privileges, hide_memory
from mplang_confinement.seccomp import CHILDREN, CONNECT, NETWORK, give_up_calls, has_seccomp

__all__ = [
    "CHILDREN",
    "CONNECT",
    "NETWORK",
    "PROGRAMS",
    "MemoryFolders",
    "give_up_calls",
    "give_up_files",
    "give_up_privileges",
    "give_up_writing",
    "has_seccomp",
    "hide_memory",
    "landlock_version",
    "make_ruleset",
    "set_limits",
]

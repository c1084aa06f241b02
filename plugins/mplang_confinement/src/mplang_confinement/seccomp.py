"""System calls that a process gives up: seccomp.

References:
    Linux: seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Collection, Sequence

from mplang_confinement.system import checked, libc

# x86_64 and aarch64
_CALLS = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "bind": (49, 200), "listen": (50, 201), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130), "fork": (57, None),
    "vfork": (58, None), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "chroot": (161, 51), "pivot_root": (155, 41), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "setpriority": (141, 140),
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "ioprio_set": (251, 30),
    # System V's shared memory, queues and semaphores
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    # what belongs to a file, which Landlock leaves alone
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "utime": (132, None), "utimes": (235, None),
    "utimensat": (280, 88), "futimesat": (261, None),
}  # fmt: skip
CONNECT = ("socket", "connect")
"""Calls by which a process reaches others over the network."""
NETWORK = (*CONNECT, "accept", "accept4", "bind", "listen")
"""Those, and calls by which it is reached."""
CHILDREN = ("fork", "vfork", "clone", "execve")
"""Calls by which a process starts programs; which ones, :func:`give_up_files` tells."""
# refused with these values of an argument: a descriptor's owner is sent signals, also of others
_WITH = {
    "fcntl": ((72, 25), 1, (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
    "ioctl": ((16, 29), 1, (0x8901, 0x8902, 0x5412)),  # FIOSETOWN, SIOCSPGRP, TIOCSTI
    "prctl": ((157, 167), 0, (1, 4)),  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE
}
_OWN = {"kill": (62, 129), "tgkill": (234, 131)}  # of this process only
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x00010000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06  # of classic BPF
_PERMIT, _REFUSE, _UNKNOWN, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_SECCOMP = (317, 277)
_SET_FILTER, _ALL_THREADS = 1, 1
_NUMBER, _ARCH, _FIRST = 0, 4, 16  # offsets in struct seccomp_data


def has_seccomp() -> bool:
    """Return whether system calls can be given up on this machine."""
    return platform.machine() in _MACHINES


def give_up_calls(keep: Collection[str] = ()) -> None:
    """Drop system calls that reach the network or other processes, in all threads of this process.

    The calls fail with EPERM; ``clone3`` with ENOSYS, so that libc takes ``clone``.

    Args:
        keep: calls that are kept, of :data:`NETWORK` or :data:`CHILDREN`, until they are given up,
            too.

    Raises:
        OSError: the kernel refuses.
    """
    if not has_seccomp():
        return
    column, arch = _MACHINES[platform.machine()]
    code = [
        _instruction(_LOAD, _ARCH),
        _instruction(_EQUAL, arch, 1, 0),
        _instruction(_RETURN, _KILL),
    ]
    code.append(_instruction(_LOAD, _NUMBER))
    for number in (each[column] for name, each in _CALLS.items() if name not in keep):
        if number is not None:
            code += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _REFUSE)]
    code += [_instruction(_EQUAL, _CLONE3[column], 0, 1), _instruction(_RETURN, _UNKNOWN)]
    for number in (each[column] for each in _OWN.values()):
        code += _first_argument(number, _instruction(_EQUAL, os.getpid(), 1, 0))
    for numbers, argument, values in _WITH.values():
        code += _without(numbers[column], argument, values)
    if "clone" not in keep:
        code += _first_argument(_CLONE[column], _instruction(_ANY_BIT, _CLONE_THREAD, 1, 0))
    if platform.machine() == "x86_64":  # the numbers of x32 are those of other calls
        code += [_instruction(0x35, 0x40000000, 0, 1), _instruction(_RETURN, _REFUSE)]
    code.append(_instruction(_RETURN, _PERMIT))
    program = ctypes.create_string_buffer(b"".join(code))
    given = struct.pack("=HxxxxxxQ", len(code), ctypes.addressof(program))
    checked(libc.syscall(_SECCOMP[column], _SET_FILTER, _ALL_THREADS, given))


def _without(number: int, argument: int, values: Sequence[int]) -> list[bytes]:
    """Refuse a call if an argument has one of some values."""
    tests = [each for value in values for each in (_instruction(_EQUAL, value, 0, 1), _REFUSAL)]
    return [
        _instruction(_EQUAL, number, 0, 2 + len(tests)),
        _instruction(_LOAD, _FIRST + 8 * argument),
        *tests,
        _instruction(_RETURN, _PERMIT),
    ]


def _first_argument(number: int, permits: bytes) -> list[bytes]:
    """Refuse a call unless its first argument passes a test."""
    return [
        _instruction(_EQUAL, number, 0, 4),
        _instruction(_LOAD, _FIRST),
        permits,
        _instruction(_RETURN, _REFUSE),
        _instruction(_RETURN, _PERMIT),
    ]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


_REFUSAL = _instruction(_RETURN, _REFUSE)

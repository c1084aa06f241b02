"""Confinement of engines: what a coordinator's code cannot do, whatever it is.

Twice: the process that forks engines gives up capabilities, new privileges, core dumps and all
files but those that Python and its packages consist of (Landlock). Each engine then gives up the
system calls that reach other processes or the network (seccomp), and gets its limits. Threads that
a library starts at the fork inherit the former, and are subject to the latter, too.

References:
    Linux: landlock(7), seccomp(2), capabilities(7), PR_SET_DUMPABLE in prctl(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from mplang_http.config import Limits

_libc = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38

# -- files: Landlock

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_create_ruleset and so on, on all machines
_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # number of rights by version
_SCOPES = 3  # abstract Unix sockets, and signals
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone",
    "/etc/nsswitch.conf", "/etc/passwd", "/proc", "/sys/fs/cgroup", "/sys/devices/system",
    "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
_OUTPUT = ("/dev/null",)


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 for none."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


def give_up_files(readable: Iterable[str] = ()) -> None:
    """Give up all files but those of Python and its packages, for this thread and what it forks.

    Does nothing where the kernel has no Landlock; ``mplang doctor`` tells.

    Args:
        readable: further files and folders that may be read.

    Raises:
        OSError: the kernel refuses.
    """
    version = landlock_version()
    if not version:
        return
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    fields = [rights, 0, _SCOPES if version >= 6 else 0]
    attributes = struct.pack("=3Q", *fields)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _checked(_libc.syscall(_CREATE, attributes, len(attributes), 0))
    try:
        python = {sys.prefix, sys.base_prefix, *sys.path, *sysconfig.get_paths().values()}
        for path in {*_SYSTEM, *filter(os.path.isabs, python), *readable}:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        for path in _OUTPUT:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
        _checked(_libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not there
    try:
        if not Path(path).is_dir():
            rights &= ~_READ_DIR
        _checked(_libc.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, file), 0))
    finally:
        os.close(file)


# -- privileges


def give_up_privileges() -> None:
    """Give up capabilities, new privileges, and being read by other processes of the user.

    Raises:
        OSError: the kernel refuses.
    """
    hide_memory()
    with contextlib.suppress(OSError):  # the kernel ends engines first when memory is short
        Path("/proc/self/oom_score_adj").write_text("1000")
    _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    _checked(_libc.capset(header, bytes(24)))


def hide_memory() -> None:
    """Have the memory of this process not read by others of the user, nor dumped."""
    _checked(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# -- system calls: seccomp

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
_NETWORK = ("socket", "connect", "accept", "accept4", "bind", "listen")
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


def give_up_calls(*, network: bool = False) -> None:
    """Give up what reaches the network or other processes, in all threads of this process.

    The calls fail with EPERM; ``clone3`` with ENOSYS, so that libc takes ``clone``.

    Args:
        network: whether to keep the network, for links of libspu that have ports of their own.

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
    kept = _NETWORK if network else ()
    for number in (each[column] for name, each in _CALLS.items() if name not in kept):
        if number is not None:
            code += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _REFUSE)]
    code += [_instruction(_EQUAL, _CLONE3[column], 0, 1), _instruction(_RETURN, _UNKNOWN)]
    for number in (each[column] for each in _OWN.values()):
        code += _first_argument(number, _instruction(_EQUAL, os.getpid(), 1, 0))
    for numbers, argument, values in _WITH.values():
        code += _without(numbers[column], argument, values)
    code += _first_argument(_CLONE[column], _instruction(_ANY_BIT, _CLONE_THREAD, 1, 0))
    if platform.machine() == "x86_64":  # the numbers of x32 are those of other calls
        code += [_instruction(0x35, 0x40000000, 0, 1), _instruction(_RETURN, _REFUSE)]
    code.append(_instruction(_RETURN, _PERMIT))
    program = ctypes.create_string_buffer(b"".join(code))
    given = struct.pack("=HxxxxxxQ", len(code), ctypes.addressof(program))
    _checked(_libc.syscall(_SECCOMP[column], _SET_FILTER, _ALL_THREADS, given))


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


# -- limits


def set_limits(limits: Limits, cores: Sequence[int]) -> None:
    """Limit memory, CPU time, files and cores of this process.

    Args:
        limits: the limits; memory is in addition to what the process has already.
        cores: the cores; all if there are none.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stacks
    size = pages * resource.getpagesize() + limits.memory
    _lower(resource.RLIMIT_DATA, size)
    _lower(resource.RLIMIT_NOFILE, limits.files)
    if limits.cpu is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, limits.cpu + int(used.ru_utime + used.ru_stime))
    if cores:
        os.sched_setaffinity(0, cores)


def _lower(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(what, (limit, limit))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

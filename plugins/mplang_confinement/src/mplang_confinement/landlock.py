"""Files and ports that a process gives up: Landlock.

References:
    Linux: landlock(7).
"""

from __future__ import annotations

import glob
import os
import shutil
import struct
import sys
import sysconfig
from collections.abc import Collection, Iterable
from pathlib import Path

from mplang_confinement.system import checked, libc

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_create_ruleset and so on, on all machines
_EXECUTE, _READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 0, 1 << 2, 1 << 3, 1 << 1
_OF_FOLDERS = _READ_DIR | 1 << 5 | 1 << 8  # and to remove and to make a file
_WRITE = _READ_FILE | _WRITE_FILE | _OF_FOLDERS | 1 << 14  # and to truncate
_TREES = 1 << 4 | 1 << 7 | 1 << 13  # to remove and to make folders, and to move files among them
_PATH_BENEATH, _NET_PORT = 1, 2
_BIND_TCP, _CONNECT_TCP = 1, 2
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # number of rights by version
_SCOPES = 3  # abstract Unix sockets, and signals
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone",
    "/etc/nsswitch.conf", "/etc/passwd", "/proc", "/sys/fs/cgroup", "/sys/devices/system",
    "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
_OUTPUT = ("/dev/null",)
_LOADERS = ("/lib64/ld-linux*.so*", "/lib/ld-linux*.so*", "/lib/ld-musl*.so*")
PROGRAMS = "/usr/bin:/bin"
"""Where programs are that a process may keep."""


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 for none."""
    return max(0, int(libc.syscall(_CREATE, None, 0, 1)))


def make_ruleset(*, network: bool = True) -> int | None:
    """Return rules that permit the files of Python and its packages, for :func:`give_up_files`.

    Args:
        network: whether it is to give up connections, too.

    Returns:
        A descriptor; ``None`` where the kernel has no Landlock.

    Raises:
        OSError: the kernel refuses.
    """
    version = landlock_version()
    if not version:
        return None
    handled = _BIND_TCP | _CONNECT_TCP if network and version >= 4 else 0
    fields = [_file_rights(version), handled, _SCOPES if version >= 6 else 0]
    attributes = struct.pack("=3Q", *fields)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = checked(libc.syscall(_CREATE, attributes, len(attributes), 0))
    python = {sys.prefix, sys.base_prefix, *sys.path, *sysconfig.get_paths().values()}
    try:
        for path in {*_SYSTEM, *filter(os.path.isabs, python)}:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        for path in _OUTPUT:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def give_up_files(
    readable: Iterable[str] = (),
    writable: Iterable[str] = (),
    ports: Iterable[int] | None = None,
    *,
    folders: Iterable[str] = (),
    programs: Collection[str] = (),
    rules: int | None = None,
) -> None:
    """Drop access to all files but those of Python and its packages, for this thread and its forks.

    Does nothing where the kernel has no Landlock; ``mplang doctor`` tells.

    Args:
        readable: further files and folders that may be read.
        writable: files, and folders in which files may be made and removed, that may be read, too.
        ports: of TCP, to which alone it may connect, on whatever host; any if ``None``. Needs Linux
            6.7.
        folders: folders in which files and folders may be made and removed, and be read, too.
        programs: names of programs of :data:`PROGRAMS` that it may still run.
        rules: of :func:`make_ruleset`, which are closed; made now if they are not given. With
            ``ports`` they are made with ``network``, and without they are not.

    Raises:
        OSError: the kernel refuses.
    """
    version = landlock_version()
    ruleset = make_ruleset(network=ports is not None) if rules is None else rules
    if ruleset is None:
        return
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        for path in writable:
            _allow(ruleset, path, _WRITE & _file_rights(version))
        for path in folders:
            _allow(ruleset, path, (_WRITE | _TREES) & _file_rights(version))
        for path in _files_of(programs):
            _allow(ruleset, path, _EXECUTE | _READ_FILE)
        for port in ports or () if version >= 4 else ():
            rule = struct.pack("=QQ", _CONNECT_TCP, port)
            checked(libc.syscall(_ADD, ruleset, _NET_PORT, rule, 0))
        checked(libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def give_up_writing() -> None:
    """Drop the rights to change files and to execute, whatever :func:`give_up_files` left of them.

    Does nothing where the kernel has no Landlock.

    Raises:
        OSError: the kernel refuses.
    """
    version = landlock_version()
    if not version:
        return
    rights = _file_rights(version) & ~(_READ_FILE | _READ_DIR)
    attributes = struct.pack("=Q", rights)
    ruleset = checked(libc.syscall(_CREATE, attributes, len(attributes), 0))
    try:
        for path in _OUTPUT:
            _allow(ruleset, path, _WRITE_FILE)
        checked(libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def _files_of(programs: Collection[str]) -> list[str]:
    """Return the files of programs, and those that load them."""
    files = [shutil.which(each, path=PROGRAMS) for each in programs]
    loaders = [path for each in _LOADERS for path in glob.glob(each)] if programs else []
    return [*filter(None, files), *loaders]


def _file_rights(version: int) -> int:
    """Return all rights to files and folders that a version of Landlock knows."""
    return (1 << _FILE_RIGHTS.get(version, 16)) - 1


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not there
    try:
        if not Path(path).is_dir():
            rights &= ~_OF_FOLDERS
        checked(libc.syscall(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, file), 0))
    finally:
        os.close(file)

"""Files of a sink on disk: written so that a failure of the machine leaves them whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mplang_data.stored.entry import StoreError

StrPath: TypeAlias = str | Path
BLOCK = 1 << 20  # bytes
ROOM = 16 << 20  # bytes that a disk has left, or little can be stored


class FixedReader:
    """Reader of a file as long as it is now, whoever else reads from its descriptor.

    It takes no more memory than the file has bytes.

    Args:
        file: the descriptor, which stays open.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._at, self._end = 0, os.fstat(file).st_size

    def read(self, size: int = BLOCK, /) -> bytes:
        """Return as many bytes, or fewer; none at the end."""
        chunk = os.pread(self._file, min(size, self._end - self._at), self._at)
        self._at += len(chunk)
        return chunk


def shortage(folder: Path) -> str:
    """Return why nothing can be written in a folder now, without the attempt; empty if it can."""
    try:
        system = os.statvfs(folder)
    except OSError as error:
        return error.strerror or "it is not there"
    if system.f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    free = system.f_bavail * system.f_frsize
    return "" if free >= ROOM else f"its disk has {free} bytes left"


def sha256_of(file: int) -> str:
    """Return the SHA-256 of a file by its descriptor, in hex."""
    digest, reader = hashlib.sha256(), FixedReader(file)
    while chunk := reader.read(BLOCK):
        digest.update(chunk)
    return digest.hexdigest()


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder, some of which may go meanwhile."""
    size = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                size += os.stat(os.path.join(path, file), follow_symlinks=False).st_size
    return size


def at(folder: StrPath, name: str) -> str:
    """Return the path of a file by a name that is of it alone, such as that of a version.

    It is not a :class:`pathlib.Path`: those intern each part of theirs, and CPython's table of
    interned strings grows by what goes through it.

    Args:
        folder: the folder in which it is.
        name: its name.
    """
    return os.path.join(folder, name)


def new(folder: StrPath) -> str:
    """Return the path of a file that is being written; one that was interrupted is of no use."""
    return at(folder, f".new-{secrets.token_hex(8)}")


def remove(path: StrPath) -> None:
    """Remove a folder at once: whoever is killed meanwhile leaves no half of it by its name."""
    folder = os.path.dirname(path)
    gone = at(folder, f".gone-{secrets.token_hex(8)}")
    os.rename(path, gone)
    sync(folder)
    shutil.rmtree(gone)


def discard(path: StrPath) -> None:
    """Remove what an interrupted write left."""
    with contextlib.suppress(OSError):
        os.unlink(path) if os.path.islink(path) else shutil.rmtree(path)


def make(folder: Path) -> None:
    """Make a folder and those above it; they are there after a failure of the machine."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def flush(file: BinaryIO) -> None:
    """Write what is buffered of a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(folder: StrPath) -> None:
    """Write the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Report a failure of the file system, without its paths."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"it cannot be {what}: {error.strerror}") from error

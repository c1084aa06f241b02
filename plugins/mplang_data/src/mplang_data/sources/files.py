"""Files of data sets: found, opened and mapped into memory."""

from __future__ import annotations

import ctypes
import glob
import mmap
import os
import re
import stat
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mplang_core import BaseType
from mplang_data.description import SIZE, SourceError, SourceUnreachableError
from mplang_data.sources.duckdb_engine import QueriedByDuckDb
from mplang_data.sources.source import close_all

MAX_FILES = 128  # of one data set, which an engine has open while it reads
_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_ESCAPED = re.compile(r"\[([*?[])\]")  # as glob.escape writes it


class Files(QueriedByDuckDb):
    """Source of files; see :class:`mplang_data.Source`."""

    @abstractmethod
    def names(self, file: int) -> Sequence[str]:
        """Return the names of the columns of a file.

        Raises:
            SourceError: it is damaged.
        """

    def probe(self, files: Sequence[int], kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Read the files; see :class:`mplang_data.Source`."""
        from mplang_data.columns import check_there

        for file in files if match else ():
            check_there(match, self.names(file))
        return getattr(self.read(files, kind), "num_rows", None)

    def place(self, where: str, folder: str) -> str:
        """Return the absolute path; wildcards of the folder are none."""
        return os.path.join(glob.escape(os.path.abspath(folder)), where)

    def open(
        self,
        where: str,
        kind: BaseType,
        match: Sequence[str] = (),
        *,
        rows: bool = True,
        size: int = SIZE,
    ) -> list[int]:
        """Open the files, whatever is read of them."""
        return open_files(where)

    def reach(self, where: str) -> None:
        """Check that the files are there; read nothing.

        Raises:
            SourceError: they are not.
        """
        close_all(open_files(where))


def open_files(where: str) -> list[int]:
    """Open the files of a path, which may have wildcards, in the order of their names.

    Args:
        where: an absolute path.

    Returns:
        Their descriptors; the caller closes them.

    Raises:
        SourceUnreachableError: there are none, or one cannot be opened.
        SourceError: there are too many, or one is not a regular file, or a symbolic link leads
            out of the folder that the path names.
    """
    parts = Path(where).parts
    fixed = next((i for i, part in enumerate(parts[:-1]) if _is_pattern(part)), len(parts) - 1)
    folder = os.path.realpath(_plain(os.path.join(*parts[:fixed])))
    is_pattern = any(map(_is_pattern, parts))
    found = sorted(glob.glob(where)) if is_pattern else [_plain(where)]
    if not found:
        raise SourceUnreachableError("there is no file of it")
    if not 0 < len(found) <= MAX_FILES:
        raise SourceError(f"there are {len(found)} files of it, and may be 1 to {MAX_FILES}")
    opened: list[int] = []
    try:
        for path in found:
            opened.append(_open(path, folder))
    except BaseException:
        close_all(opened)
        raise
    return opened


def _is_pattern(part: str) -> bool:
    return any(sign in _ESCAPED.sub("", part) for sign in "*?[")


def _plain(path: str) -> str:
    return _ESCAPED.sub(r"\1", path)


def _open(path: str, folder: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path"
        raise SourceUnreachableError(f"a file of it cannot be opened: {why}") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise SourceError("a file of it is not a regular file")
        # what was opened, not what the path says now
        real = os.readlink(f"/proc/self/fd/{file}")
        if os.path.commonpath([real, folder]) != folder:
            raise SourceError("a symbolic link leads out of its folder")
    except BaseException:
        os.close(file)
        raise
    return file


def mapped(file: int) -> Any:
    """Return the contents of a file as an Arrow buffer, mapped and not copied.

    Raises:
        SourceError: it is empty.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    size = os.fstat(file).st_size
    if not size:
        raise SourceError("a file of it is empty")
    made = _Map(file, size)
    return pa.foreign_buffer(made.address, size, made)


class _Map:
    """Map of a file, without a descriptor, of which Python's own map keeps one."""

    def __init__(self, file: int, size: int) -> None:
        self._size = size
        self.address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        if self.address in (None, _FAILED):
            self.address = None
            raise SourceError("a file of it cannot be mapped")

    def __del__(self) -> None:
        if self.address is not None:
            _libc.munmap(self.address, self._size)

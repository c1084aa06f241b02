"""Processes that read what strangers made: confined, each for one source or sink."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mplang_core.ext import printable
from mplang_data.description import SIZE, SourceError, SourceUnreachableError

TIMEOUT = 600.0  # seconds in which a process has done it
MAX_TOLD = 1 << 20  # bytes of what it tells
MAX_DETAIL = 500  # characters
LAST = 4 << 10  # bytes of what it writes to stderr

__all__ = ["run_apart"]

_PASSED = ("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH")
_PASSED_BEGINNINGS = ("PYTHON", "LC_", "PG")  # PG: where a database is, as libpq takes it


def run_apart(
    module: str,
    asked: dict[str, Any],
    files: Sequence[int],
    *,
    size: int = SIZE,
    connects: bool = False,
) -> Any:
    """Have a confined process do something with open files, and wait for it.

    A process that connects says so on its socket ``connected``, before it reads any row. What it
    said cannot be taken back, whatever the rows make of the process afterwards.

    Args:
        module: what it runs, which calls :func:`mplang_data.apart.child.serve`.
        asked: what it is told, as plain data.
        files: descriptors of files that it has open, too.
        size: bytes that what it works on may have in memory.
        connects: whether it connects to a source, which ``asked`` names, by
            :func:`mplang_data.apart.child.tell_connected`.

    Returns:
        What it tells, as plain data.

    Raises:
        SourceUnreachableError: it fails before it has connected.
        SourceError: it fails, with what is for the owner only as its cause.
    """
    if not connects:
        return _run(module, asked, files, size)
    mine, theirs = socket.socketpair()  # no pipe, which its writer could empty by /proc/self/fd
    with mine, theirs:
        request = {**asked, "connected": theirs.fileno()}
        try:
            return _run(module, request, [*files, theirs.fileno()], size)
        except (SourceError, OSError) as error:
            with contextlib.suppress(BlockingIOError):
                mine.recv(1, socket.MSG_DONTWAIT)
                raise
            cause = error.__cause__ if isinstance(error, SourceError) else error
            raise SourceUnreachableError("its source cannot be reached") from (cause or error)


def _run(module: str, asked: Mapping[str, object], files: Sequence[int], size: int) -> object:
    command = [sys.executable, "-P", "-m", module, *map(str, files)]
    given = json.dumps({**asked, "parent": os.getpid(), "size": size}).encode()
    with _memory_file() as told, _memory_file() as errors:
        try:
            done = subprocess.run(
                command, input=given, stdout=told, stderr=errors, pass_fds=files,
                env=_environment(), timeout=TIMEOUT, check=False, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SourceError(f"it is not read within {TIMEOUT:g} s") from None
        try:
            found = json.loads(os.pread(told, MAX_TOLD, 0))
            public, detail, value = found["error"], found["detail"], found["value"]
        except (ValueError, LookupError, TypeError, RecursionError):
            public = (
                f"the process that reads it has ended; it may take {size} bytes of memory (size, "
                "in the catalogue)"
            )
            detail, value = f"exit code {done.returncode} {_last_line(errors)}", None
    if public is not None:
        cause = RuntimeError(_cut(detail)) if detail else None
        raise SourceError(_cut(public)) from cause
    return value


@contextlib.contextmanager
def _memory_file() -> Iterator[int]:
    """A file and no pipe, so that whoever writes without end meets its limit."""
    file = os.memfd_create("mplang-told", os.MFD_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(_PASSED_BEGINNINGS)
    }
    return kept | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # which takes what it needs only


def _last_line(file: int) -> str:
    end = os.fstat(file).st_size
    lines = os.pread(file, LAST, max(0, end - LAST)).decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def _cut(text: Any) -> str:
    return printable(" ".join(str(text).split()))[:MAX_DETAIL]

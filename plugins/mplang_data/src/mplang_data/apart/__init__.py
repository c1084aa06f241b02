"""Processes that read what strangers made: confined, each for one source, sink or query."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mplang_core.ext import printable
from mplang_data.description import SIZE, SourceError, SourceUnreachableError

TIMEOUT = 600.0  # seconds in which a process has done it
MAX_TOLD = 1 << 20  # bytes of what it tells
MAX_FILES = 240  # open files that a process is given
MAX_DETAIL = 500  # characters
LAST = 4 << 10  # bytes of what it writes to stderr

__all__ = ["run_apart"]

_PASSED = ("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH")
_PASSED_BEGINNINGS = ("PYTHON", "LC_", "PG")  # PG: where a database is, as libpq takes it

Watch = Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]]
"""Takes what ends a process, for as long as it runs."""


def unwatched(end: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Return the :data:`Watch` of a process that nothing ends before its time."""
    return contextlib.nullcontext()


def run_apart(
    module: str,
    asked: dict[str, Any],
    files: Sequence[int],
    *,
    size: int = SIZE,
    seconds: float = TIMEOUT,
    connects: bool = False,
    watch: Watch = unwatched,
) -> Any:
    """Have a confined process do something with open files, and wait for it.

    A process that connects says so on its socket ``connected``, before it reads any row. What it
    said cannot be taken back, whatever the rows make of the process afterwards.

    Args:
        module: what it runs, whose ``TASK`` is a :class:`mplang_data.apart.child.Task`.
        asked: what it is told, as plain data.
        files: descriptors of files that it has open, too.
        size: bytes that what it works on may have in memory.
        seconds: time after which it is ended.
        connects: whether it connects to a source, which ``asked`` names, by
            :func:`mplang_data.apart.child.tell_connected`.
        watch: is given what ends the process.

    Returns:
        What it tells, as plain data.

    Raises:
        SourceUnreachableError: it fails before it has connected.
        SourceError: it fails, with what is for the owner only as its cause.
    """
    request = {**asked, "module": module, "size": size, "environment": _environment()}
    if not connects:
        return _run(request, files, seconds, watch)
    mine, theirs = socket.socketpair()  # no pipe, which its writer could empty by /proc/self/fd
    with mine, theirs:
        try:
            return _run({**request, "connects": True}, [*files, theirs.fileno()], seconds, watch)
        except (SourceError, OSError) as error:
            with contextlib.suppress(BlockingIOError):
                mine.recv(1, socket.MSG_DONTWAIT)
                raise
            cause = error.__cause__ if isinstance(error, SourceError) else error
            raise SourceUnreachableError("its source cannot be reached") from (cause or error)


def _run(asked: Mapping[str, Any], files: Sequence[int], seconds: float, watch: Watch) -> object:
    if len(files) > MAX_FILES:
        raise SourceError(f"there are {len(files)} files to read at once, and may be {MAX_FILES}")
    with _memory_file() as given, _memory_file() as told, _memory_file() as errors:
        os.pwrite(given, json.dumps(asked).encode(), 0)
        code = _server.run([given, told, errors, *files], seconds, watch)
        try:
            found = json.loads(os.pread(told, MAX_TOLD, 0))
            public, detail, value = found["error"], found["detail"], found["value"]
            where = str(found["where"])
        except (ValueError, LookupError, TypeError, RecursionError):
            public = (
                f"the process that reads it has ended; it may take {asked['size']} bytes of memory "
                "(size, in the catalogue)"
            )
            detail, where, value = f"exit code {code} {_last_line(errors)}", "", None
    if public is not None:
        cause = RuntimeError(_cut(detail)) if detail else None
        raise SourceError(_cut(public), detail=_cut(where)) from cause
    return value


class _ServerClient:
    """Client of :mod:`mplang_data.apart.forks`, which is started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def run(self, files: Sequence[int], seconds: float, watch: Watch) -> str:
        """Run a process that does what its files say; return its exit code.

        Raises:
            SourceError: it takes too long, or cannot be started.
        """
        mine, theirs = socket.socketpair()
        with mine:
            with theirs:
                self._send([theirs.fileno(), *files])
            head, handles, _, _ = socket.recv_fds(mine, MAX_DETAIL, 1)
            if not handles:
                raise SourceError("no process can be started that reads it") from RuntimeError(
                    head.decode(errors="replace")
                )
            with _closing(handles[0]) as handle, watch(lambda: _kill(handle)):
                mine.settimeout(seconds)
                try:
                    return mine.recv(MAX_DETAIL).decode(errors="replace")
                except TimeoutError:
                    raise SourceError(f"it is not read within {seconds:g} s") from None
                finally:
                    _kill(handle)

    def _send(self, files: Sequence[int]) -> None:
        with self._lock:
            try:
                socket.send_fds(self._started(), [b"+"], list(files))
            except OSError:  # it has ended
                self._sock = None
                socket.send_fds(self._started(), [b"+"], list(files))

    def _started(self) -> socket.socket:
        if self._sock is not None and self._pid == os.getpid():  # a fork has one of its own
            return self._sock
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mplang_data.apart.forks", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env=_environment(), start_new_session=True,
            )  # fmt: skip
        self._sock, self._pid = mine, os.getpid()
        return mine


_server = _ServerClient()


def _kill(handle: int) -> None:
    with contextlib.suppress(OSError):  # it has ended
        signal.pidfd_send_signal(handle, signal.SIGKILL)


@contextlib.contextmanager
def _closing(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _memory_file() -> Iterator[int]:
    """Make a file and no pipe, so that whoever writes without end meets its limit."""
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

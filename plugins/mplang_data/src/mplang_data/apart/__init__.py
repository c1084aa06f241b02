"""Processes that read what strangers made: confined, each for one source, sink or query."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from mplang_core.ext import printable
from mplang_data.description import SIZE, SourceError, SourceUnreachableError

TIMEOUT = 600.0  # seconds in which a process has done it
MAX_TOLD = 1 << 20  # bytes of what it tells
MAX_FILES = 240  # open files that a process is given
MAX_DETAIL = 500  # characters
PROGRESS = 16  # bytes at the beginning of what it tells: how far it is
REPORTED, REPORTED_LAST = 1.0, 600.0  # seconds until it is first told how far it is, and at most
LAST = 4 << 10  # bytes of what it writes to stderr
CONNECTED, DONE = b"1", b"2"  # what it says on its line
AHEAD, ONCE = "ahead", "once"  # whether another process is forked ahead, for what is asked next

__all__ = ["fork_ahead", "run_apart"]

_PASSED = ("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH")
_PASSED_BEGINNINGS = ("PYTHON", "LC_", "PG")  # PG: where a database is, as libpq takes it

Report = Callable[[float, float | None], None]
"""Is told how many seconds a process has run, and the percentage that is done, if that is known."""

Watch = Callable[[Callable[[], None]], contextlib.AbstractContextManager[Report | None]]
"""Takes what ends a process, for as long as it runs; gives what is told how far it is."""


def unwatched(end: Callable[[], None]) -> contextlib.AbstractContextManager[Report | None]:
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
    kinds: Collection[str] = (),
    watch: Watch = unwatched,
) -> Any:
    """Run a command on open files in a confined process, and wait for it.

    A process that connects says so on its line, before it reads any row. What it said cannot be
    taken back, whatever the rows make of the process afterwards. Once it says that it is done it is
    ended, and its end is not waited for.

    Args:
        module: what it runs, whose ``TASK`` is a :class:`mplang_data.apart.child.Task`.
        asked: what it is told, as plain data.
        files: descriptors of files that it has open, too.
        size: bytes that what it works on may have in memory.
        seconds: time after which it is ended.
        connects: whether it connects to a source, which ``asked`` names, by
            :func:`mplang_data.apart.child.tell_connected`.
        kinds: kinds of the sources that it reads, for which its server prepares.
        watch: is given what ends the process.

    Returns:
        What it tells, as plain data.

    Raises:
        SourceUnreachableError: it fails before it has connected.
        SourceError: it fails, with what is for the owner only as its cause.
    """
    request = {**asked, "module": module, "size": size, "environment": _environment()}
    with _Line() as line:
        try:
            return _run(request, files, line, kinds, seconds, watch)
        except (SourceError, OSError) as error:
            if not connects or CONNECTED in line.said():
                raise
            cause = error.__cause__ if isinstance(error, SourceError) else error
            raise SourceUnreachableError("its source cannot be reached") from (cause or error)


def fork_ahead() -> None:
    """Fork processes ahead from now on, so that what is asked waits for none.

    A worker does. It takes CPU time after each that has read something, and memory for one.
    """
    _server.ahead = True


def _run(
    asked: Mapping[str, Any],
    files: Sequence[int],
    line: _Line,
    kinds: Collection[str],
    seconds: float,
    watch: Watch,
) -> object:
    if len(files) > MAX_FILES:
        raise SourceError(f"there are {len(files)} files to read at once, more than {MAX_FILES}")
    with _memory_file() as given, _memory_file() as told, _memory_file() as errors:
        os.pwrite(given, json.dumps(asked).encode(), 0)
        code = _server.run([given, told, errors, line.end, *files], line, kinds, seconds, watch)
        try:
            found = json.loads(os.pread(told, MAX_TOLD, PROGRESS))
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


class _Line:
    """Socket on which a process says how far it is: no pipe, which its writer could empty."""

    def __init__(self) -> None:
        self._mine, self._theirs = socket.socketpair()
        self._said = b""

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *error: object) -> None:
        self._mine.close()
        self._theirs.close()

    def fileno(self) -> int:
        """Return the descriptor that is read when the process says something."""
        return self._mine.fileno()

    @property
    def end(self) -> int:
        """The descriptor that the process is given."""
        return self._theirs.fileno()

    def said(self) -> bytes:
        """Return what the process has said; more than it has to say is cut off."""
        with contextlib.suppress(BlockingIOError):
            self._said += self._mine.recv(len(CONNECTED + DONE), socket.MSG_DONTWAIT)
        return self._said

    def is_done(self) -> bool:
        """Return whether the process says that it is done, or what no process of ours does."""
        return self.said() not in (b"", CONNECTED)


class _ServerClient:
    """Client of :mod:`mplang_data.apart.forks`, which is started when it is needed.

    Attributes:
        ahead: whether the server forks a process ahead for what is asked next.
    """

    def __init__(self) -> None:
        self.ahead = False
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def run(
        self,
        files: Sequence[int],
        line: _Line,
        kinds: Collection[str],
        seconds: float,
        watch: Watch,
    ) -> str:
        """Run a process that does what its files say; return its exit code.

        Raises:
            SourceError: it takes too long, or cannot be started.
        """
        mine, theirs = socket.socketpair()
        with mine:
            with theirs:
                self._send(kinds, [theirs.fileno(), *files])
            head, handles, _, _ = socket.recv_fds(mine, MAX_DETAIL, 1)
            if not handles:
                raise SourceError("its reader process cannot start") from RuntimeError(
                    head.decode(errors="replace")
                )
            with _closing(handles[0]) as handle, watch(lambda: _kill(handle)) as report:
                try:
                    return _code_of(mine, line, files[1], seconds, report)
                finally:
                    _kill(handle)

    def _send(self, kinds: Collection[str], files: Sequence[int]) -> None:
        asked = [AHEAD if self.ahead else ONCE, *sorted(kinds)]
        with self._lock:
            try:
                socket.send_fds(self._started(), [" ".join(asked).encode()], list(files))
            except OSError:  # it has ended
                self._sock = None
                socket.send_fds(self._started(), [" ".join(asked).encode()], list(files))

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


def _code_of(
    sock: socket.socket, line: _Line, progress: int, seconds: float, report: Report | None
) -> str:
    """Wait until a process has done it, and report meanwhile: each time after twice as long.

    Args:
        sock: gets its exit code.
        line: on which it says that it is done.
        progress: descriptor of the file that begins with how far it is.
        seconds: time after which it is not waited for.
        report: is told how far it is.

    Raises:
        SourceError: it takes too long.
    """
    begun, due = time.monotonic(), REPORTED
    poll = select.poll()
    for each in (sock, line):
        poll.register(each, select.POLLIN)
    while True:
        passed = time.monotonic() - begun
        if passed >= seconds:
            raise SourceError(f"reading it takes longer than {seconds:g} s")
        if report is not None and passed >= due:
            report(passed, _percent(progress))
            due = min(2 * due, due + REPORTED_LAST)
        wait = min(seconds, due if report else seconds) - passed
        ready = [each for each, _ in poll.poll(max(1, 1000 * wait))]
        if line.fileno() in ready and line.is_done():
            return "0"
        if sock.fileno() in ready:
            return sock.recv(MAX_DETAIL).decode(errors="replace")


def _percent(progress: int) -> float | None:
    """Return which percentage a process says that it has done; ``None`` if it does not know."""
    try:
        percent = float(os.pread(progress, PROGRESS, 0))
    except ValueError:
        return None
    return percent if 0 <= percent <= 100 else None


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

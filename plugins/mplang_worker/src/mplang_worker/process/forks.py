"""Fork server: a process that imports modules once, and forks children that run one of them.

A new interpreter imports for a second; a fork takes milliseconds, and shares the memory of what
was imported. The server is :mod:`mplang_worker.process.fork_server`; its children are killed when
it ends, or get another signal (:func:`mplang_worker.process.fork_server.end_with_parent`).
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from mplang_core.ext import ConfigError
from mplang_worker.process.fork_server import serve_here
from mplang_worker.wire import ipc

IMPORT_TIMEOUT = 300.0  # seconds that a server has to import, which takes 2 s on an idle machine
FORK_TIMEOUT = 30.0  # seconds that it has to fork
MAX_CODES = 1000  # of children that have ended, of which those that ended last are known
SLICE = 0.05  # seconds that one thread listens to the server while others wait


class ForkServer:
    """Client of a fork server, which ends with it. Safe for threads.

    Args:
        *modules: modules to import; the first one has the function ``run(argument, file)`` that
            children call, perhaps ``prepare(argument)`` for :meth:`prepare`, and ``SPARES``, the
            number of children that are forked ahead: these call ``rehearse(argument)``, of the same
            argument, if there is one.
        here: whether the server is a fork of this process, which must have one thread and nothing
            in its memory that children must not read. Else it is a new interpreter.
        captured: whether what the server and its children print goes to ``output``; else it goes
            where this process prints.

    Attributes:
        alive: whether the server runs, as far as is known.
        pid: process ID of the server.
        output: descriptor of a pipe with what they print; who takes it closes it.

    Example:
        >>> server = ForkServer("mplang_worker.process.forks")
        >>> server.alive
        True
        >>> server.close()
    """

    def __init__(self, *modules: str, here: bool = False, captured: bool = False) -> None:
        self._sock, theirs = ipc.channel()
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}
        self.alive = True
        self._process: subprocess.Popen[bytes] | None = None
        self.output: int | None = None
        printed: int | None = None
        if captured:
            self.output, printed = os.pipe2(os.O_CLOEXEC)
        if here:
            sys.stdout.flush()  # what is buffered is not printed twice
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                serve_here(modules, theirs.detach(), printed)
        else:
            self._process = self._start(modules, theirs.fileno(), printed)
            self.pid = self._process.pid
        if printed is not None:
            os.close(printed)
        theirs.close()

    def _start(
        self, modules: Sequence[str], number: int, printed: int | None
    ) -> subprocess.Popen[bytes]:
        # -P: nothing is imported from the working directory
        server = "mplang_worker.process.fork_server"
        return subprocess.Popen(
            [sys.executable, "-P", "-m", server, str(number), *modules],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
        )

    def prepare(self, argument: ipc.Message) -> Any:
        """Call ``prepare(argument)`` of the first module in the server, before it forks.

        Args:
            argument: plain data.

        Returns:
            What it returns.

        Raises:
            OSError: the server has ended, or does not answer.
            ConfigError: it raised an exception.
        """
        with self._lock:
            try:
                ipc.send(self._sock, {"prepare": argument})
                while "ended" in (message := self._receive(IMPORT_TIMEOUT)):
                    pass
            except (EOFError, OSError) as error:
                self.alive = False
                raise _lost(error, IMPORT_TIMEOUT) from error
        if "failed" in message:
            raise ConfigError(message["failed"], code=message["code"])
        return message["prepared"]

    def fork(self, argument: ipc.Message, file: int, timeout: float | None = None) -> Child:
        """Start a child.

        Args:
            argument: plain data.
            file: file descriptor; the caller closes its own.
            timeout: seconds that the server has to fork; :data:`FORK_TIMEOUT` by default.

        Raises:
            OSError: the server has ended, or the system has no room for another process.
        """
        seconds = FORK_TIMEOUT if timeout is None else timeout
        with self._lock:
            if not self.alive:
                raise OSError("the fork server has ended")
            try:
                ipc.send(self._sock, {"run": argument}, file)
                while "ended" in (message := self._receive(seconds)):
                    pass
            except (EOFError, TimeoutError, BrokenPipeError, ConnectionError) as error:
                self.alive = False
                raise _lost(error, seconds) from error
            if "pid" not in message:
                raise OSError(message["refused"])
            self._codes.pop(message["pid"], None)  # of an earlier process of that number
        return Child(self, message["pid"])

    def check(self) -> bool:
        """Return whether the server still runs; does not wait for it."""
        if self._lock.acquire(blocking=False):
            try:
                self._hear(0, 0)
            finally:
                self._lock.release()
        return self.alive

    def exit_code(self, pid: int, timeout: float | None) -> int | None:
        """Return the exit code of a child, the negative signal that ended it.

        Args:
            pid: the child.
            timeout: seconds to wait.

        Returns:
            The code; ``None`` if it runs. That of a child that outlived the server is unknown, and
            counts as killed.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            with self._lock:  # not for long, as others wait for other children
                self._hear(pid, max(0.0, min(left, SLICE)))
                if pid not in self._codes and not self.alive and not _runs(pid):
                    self._codes[pid] = -signal.SIGKILL
                if pid in self._codes or left <= 0:
                    return self._codes.get(pid)
            time.sleep(0 if self.alive else min(SLICE, max(left, 0.0)))

    def _hear(self, pid: int, timeout: float) -> None:
        """Take what the server tells, until it tells of a child or the time is over."""
        try:
            while self.alive and pid not in self._codes:
                self._receive(timeout)
        except (TimeoutError, BlockingIOError):
            pass
        except (EOFError, OSError):
            self.alive = False

    def _receive(self, timeout: float | None) -> ipc.Message:
        self._sock.settimeout(timeout)
        message, _ = ipc.receive(self._sock)
        if "ended" in message:
            self._codes[message["ended"]] = message["code"]
            if len(self._codes) > MAX_CODES:
                del self._codes[next(iter(self._codes))]
        return message

    def close(self) -> None:
        """End the server, and so its children, also while it imports."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)  # whoever waits for an answer has the lock
        with self._lock:
            if self._sock.fileno() < 0:
                return
            self.alive = False
            self._sock.close()
            if self.output is not None:
                os.close(self.output)
                self.output = None
            # until it is waited for its number is its own, unless SIGCHLD is ignored
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                if self._process is not None:
                    self._process.wait()
                else:
                    os.waitpid(self.pid, 0)


def _lost(error: Exception, seconds: float) -> OSError:
    late = isinstance(error, TimeoutError)
    return OSError(
        f"the fork server does not answer in {seconds:g} s; is the machine busy?"
        if late
        else "the fork server has ended"
    )


class Child:
    """Child of a fork server; its methods are those of :class:`subprocess.Popen`.

    Args:
        server: the server.
        pid: process ID.

    Attributes:
        returncode: the exit code; ``None`` while it runs, as far as is known.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        # a signal to a number could reach another process, which has got it since
        self._handle = -1
        self._lock = threading.Lock()
        with contextlib.suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def poll(self) -> int | None:
        """Return the exit code, or ``None``."""
        if self.returncode is None:
            self.returncode = self._server.exit_code(self.pid, 0)
        if self.returncode is not None:
            self._close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended within ``timeout`` seconds.
        """
        if self.returncode is None:
            self.returncode = self._server.exit_code(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        self._close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._handle >= 0:
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def how_ended(code: int) -> str:
    """Return how a process ended, by its exit code.

    Example:
        >>> how_ended(1), how_ended(-9)
        ('with 1', 'by SIGKILL')
    """
    if code >= 0:
        return f"with {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:  # a realtime signal
        return f"by signal {-code}"


def _runs(pid: int) -> bool:
    """Return whether a process that is not a child of this one runs."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

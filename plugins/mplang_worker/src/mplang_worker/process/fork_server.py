"""Server of :mod:`mplang_worker.process.forks`: it imports modules, and forks children.

It has one thread, and no key, file or connection but that to its client, and those to children that
wait for what they are to run.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from mplang_core.ext import ConfigError
from mplang_worker.process.end import end_process
from mplang_worker.process.interned import settle_interned
from mplang_worker.process.name import name_process
from mplang_worker.wire import ipc

PR_SET_PDEATHSIG = 1
IDLE = 0.2  # seconds without a call after which it forks a spare child


def end_with_parent(number: int) -> None:
    """Request a signal when the thread that started this process ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def serve_here(modules: Sequence[str], number: int, printed: int | None) -> NoReturn:
    """Serve in a fork of the client: leave its files and signals.

    Args:
        modules: modules to import.
        number: descriptor of the socket to the client.
        printed: descriptor of what takes what is printed; ``None`` if that is the client's.
    """
    _end_with(_leave_and_serve, modules, number, printed)


def _leave_and_serve(modules: Sequence[str], number: int, printed: int | None) -> None:
    end_with_parent(signal.SIGKILL)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    if printed is not None:
        os.dup2(printed, 1)
        os.dup2(printed, 2)
    for each in map(int, os.listdir("/proc/self/fd")):
        if each > 2 and each != number:
            with contextlib.suppress(OSError):  # of the listing itself
                os.close(each)
    _serve(modules, number)


def _serve(modules: Sequence[str], number: int) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):  # the client decides
        signal.signal(each, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it was ignored, there are no exit codes
    with _gc_paused():
        first, *_ = [importlib.import_module(name) for name in modules]
    settle_interned()
    gc.freeze()  # so that a child does not copy it when it collects garbage
    _Server(socket.socket(fileno=number), first).serve()


@contextlib.contextmanager
def _gc_paused() -> Iterator[None]:
    """Collect no garbage: what is imported stays, and to look at it takes a sixth of the import."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Server:
    """Fork server: answers its client, and tells it of children that have ended.

    Args:
        sock: socket to the client.
        module: has the functions that it calls.
    """

    def __init__(self, sock: socket.socket, module: Any) -> None:
        self._sock = sock
        self._module = module
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._children: dict[int, int] = {}  # process IDs by descriptors
        self._spares: dict[int, socket.socket] = {}  # to children that wait, by descriptors
        self._prepared: ipc.Message | None = None  # what it was prepared by, if it was
        self._missing = 0  # number of spare children to start when there is time

    def serve(self) -> None:
        """Serve until the client has gone."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                found = self._poll.poll(IDLE * 1000 if self._missing else None)
                for ready, _ in found:
                    asked = ready == self._sock.fileno()
                    ipc.send(self._sock, self._answer() if asked else self._reap(ready))
                if not found:
                    self._missing -= 1
                    with contextlib.suppress(OSError):  # no room; a child is forked when needed
                        self._fork_spare()

    def _answer(self) -> ipc.Message:
        message, file = ipc.receive(self._sock)
        if "prepare" in message:
            answer = self._prepare(message["prepare"])
        else:
            assert file is not None
            answer = self._start(message["run"], file)
        if self._prepared is not None:
            self._missing = getattr(self._module, "SPARES", 0) - len(self._spares)
        return answer

    def _prepare(self, argument: ipc.Message) -> ipc.Message:
        try:
            with _gc_paused():
                done = self._module.prepare(argument)
        except ConfigError as error:
            return {"failed": str(error), "code": error.code}
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}", "code": "C003"}
        self._prepared = argument
        while self._spares:
            self._spares.popitem()[1].close()  # which ends them
        settle_interned()
        gc.collect()
        gc.freeze()
        return {"prepared": done}

    def _start(self, argument: ipc.Message, file: int) -> ipc.Message:
        try:
            pid = self._hire(argument, file)
            if pid is None:
                pid, _ = self._fork(self._module.run, argument, file)
        except OSError as error:
            return {"refused": str(error)}
        finally:
            os.close(file)
        return {"pid": pid}

    def _hire(self, argument: ipc.Message, file: int) -> int | None:
        """Start a spare child; return its process ID, or ``None`` if there is none."""
        while self._spares:
            handle = next(iter(self._spares))  # the one that has waited longest
            with (sock := self._spares.pop(handle)), contextlib.suppress(OSError):  # it has ended
                ipc.send(sock, argument, file)
                return self._children[handle]
        return None

    def _fork_spare(self) -> None:
        """Start a child that waits for what it is to run, as a fork takes milliseconds."""
        ours, theirs = ipc.channel()
        with theirs:
            try:
                _, handle = self._fork(self._run_when_told, theirs, ours)
            except OSError:
                ours.close()
                raise
        self._spares[handle] = ours

    def _run_when_told(self, sock: socket.socket, theirs: socket.socket) -> None:
        """In a spare child: rehearse, wait for the argument and the file, and run."""
        name_process("mplang-spare")
        theirs.close()
        if hasattr(self._module, "rehearse"):
            with contextlib.suppress(Exception):  # what then runs tells, if it fails as well
                self._module.rehearse(self._prepared)
        try:
            with sock:
                argument, file = ipc.receive(sock)
        except EOFError:  # the server has ended, which ends this, too
            return
        assert file is not None
        self._module.run(argument, file)

    def _fork(self, run: Callable[..., None], *args: Any) -> tuple[int, int]:
        """Start a child; return its process ID, and its descriptor."""
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            end_with_parent(signal.SIGKILL)
            if os.getppid() != me:
                os._exit(1)  # it ended before it could be asked for the signal
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _end_with(self._leave_and_run, run, *args)
        handle = os.pidfd_open(pid)
        self._children[handle] = pid
        self._poll.register(handle, select.POLLIN)
        return pid, handle

    def _leave_and_run(self, run: Callable[..., None], *args: Any) -> None:
        """In a child: close what is the server's, and run."""
        self._sock.close()
        for each in self._children:
            os.close(each)
        for sock in self._spares.values():
            sock.close()
        run(*args)

    def _reap(self, handle: int) -> ipc.Message:
        pid = self._children.pop(handle)
        if handle in self._spares:
            self._spares.pop(handle).close()
        self._poll.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(pid, 0)
        return {"ended": pid, "code": os.waitstatus_to_exitcode(status)}


def _end_with(run: Callable[..., None], *args: Any) -> NoReturn:
    """Call a function, and end this process, without what its parent would do at exit."""
    code = 1
    try:
        _reseed()
        run(*args)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        end_process(code)


def _reseed() -> None:
    """Seed the global generators, whose state is the parent's: children must not draw alike."""
    random.seed()
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


if __name__ == "__main__":
    _serve(sys.argv[2:], int(sys.argv[1]))

"""Server of confined processes: ``python -P -m mplang_data.apart.forks FD``.

It imports once what they need, has no file, key or connection but that to its client, and forks one
process for each thing that is to be done. For a worker, a spare one is forked while nothing is
asked, and has rehearsed what queries do: so no query waits for a fork, nor for the pages that it
copies.

It is not a :class:`mplang_worker.process.forks.ForkServer`, of which engines are children. That one
has in its memory what an owner prepares for sessions; what reads the files of strangers is forked
from a process that has nothing of it. A request brings up to 250
open files, and a socket on which its end is told, so that a client waits for its own alone. And
simulators and ``mplang data`` read sources where no worker is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn

from mplang_confinement import make_ruleset

from mplang_data.apart import AHEAD, child

PR_SET_NAME = 15  # what ps shows
MAX_FILES = 250  # sent at once: the kernel takes 253
MAX_ASKED = 4096  # bytes of the names of kinds
IDLE = 0.2  # seconds without a process after which a spare one is forked


def main(number: int) -> None:
    """Serve until the client has gone.

    Args:
        number: descriptor of the socket to the client.
    """
    _name_process(b"mplang-sources")
    for each in (signal.SIGINT, signal.SIGTERM):  # the client decides
        signal.signal(each, signal.SIG_IGN)
    reader = importlib.import_module("mplang_data.source_reader")
    gc.freeze()  # so that a child does not copy it when it collects garbage
    _Server(socket.socket(fileno=number), reader.prepare, reader.rehearse).serve()


def _name_process(name: bytes) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, name)


class _Server:
    """Forks a process for each request, and tells its end on a socket that came with the request.

    Args:
        sock: socket to the client.
        prepare: does before a fork what processes need that read sources of some kinds.
        rehearse: does in a spare process what queries do.
    """

    def __init__(
        self,
        sock: socket.socket,
        prepare: Callable[[Iterable[str]], None],
        rehearse: Callable[[], None],
    ) -> None:
        self._sock, self._prepare_kinds, self._rehearse = sock, prepare, rehearse
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        # process IDs, and who is told, by descriptors of processes
        self._children: dict[int, tuple[int, socket.socket | None]] = {}
        self._kinds: list[str] = []  # that it is prepared for
        self._spare: tuple[int, socket.socket] | None = None  # a process, and what tells it
        self._missing = False  # whether a spare process is to be forked when there is time

    def serve(self) -> None:
        """Serve until the client has gone, which ends all children."""
        while True:
            idle = self._missing and not self._children
            ready = self._poll.poll(IDLE * 1000 if idle else None)
            for number, _ in ready:
                if number != self._sock.fileno():
                    self._reap(number)
                elif not self._take():
                    return
            if not ready:
                self._missing = False  # until something is asked: one that fails is not tried again
                with contextlib.suppress(OSError):  # no room; one is forked when it is needed
                    self._fork_spare()

    def _take(self) -> bool:
        asked, files, _, _ = socket.recv_fds(self._sock, MAX_ASKED, MAX_FILES)
        if not files:
            return False
        ahead, *kinds = asked.decode().split()
        self._prepare(kinds)
        told = socket.socket(fileno=files[0])
        try:
            handle = self._hire(files[1:])
            if handle is None:
                run = partial(child.run, os.getpid(), files[1:])
                handle = self._fork(run, leaving=files[0])
        except OSError as error:
            told.send(f"{error}".encode())
            told.close()
        else:
            self._children[handle] = self._children[handle][0], told
            with contextlib.suppress(OSError):  # nobody waits for it any more
                socket.send_fds(told, [b"+"], [handle])
        for file in files[1:]:
            os.close(file)
        self._missing = ahead == AHEAD and self._spare is None and bool(self._kinds)
        return True

    def _prepare(self, kinds: list[str]) -> None:
        new = [kind for kind in kinds if kind not in self._kinds]
        if not new:
            return
        self._prepare_kinds(new)
        gc.freeze()
        self._kinds += new
        self._dismiss()

    def _dismiss(self) -> None:
        if self._spare is not None:
            self._spare[1].close()  # which ends it
            self._spare = None

    def _hire(self, files: list[int]) -> int | None:
        """Return the spare process, which does what is asked; ``None`` if there is none."""
        if self._spare is None:
            return None
        handle, sock = self._spare
        try:
            if os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return None  # it has ended
            socket.send_fds(sock, [b"+"], files)
        except OSError:
            return None
        finally:
            self._dismiss()
        return handle

    def _fork_spare(self) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                run = partial(self._run_spare, os.getpid(), theirs)
                handle = self._fork(run, leaving=mine.fileno())
            except OSError:
                mine.close()
                raise
        self._spare = handle, mine

    def _run_spare(self, parent: int, sock: socket.socket) -> None:
        """Run a spare process: it rehearses, and waits for what it is asked."""
        child.end_with(parent)
        _name_process(b"mplang-spare")
        rules = None
        with contextlib.suppress(Exception):  # what it is asked tells, if that fails as well
            rules = make_ruleset()
            self._rehearse()
        with sock:
            _, files, _, _ = socket.recv_fds(sock, 1, MAX_FILES)
        if files:
            _name_process(b"mplang-sources")
            child.run(parent, files, rules)

    def _fork(self, run: Callable[[], None], *, leaving: int) -> int:
        """Start a process, and return its descriptor.

        Args:
            run: what it runs.
            leaving: descriptor that is the server's, as its others are.

        Raises:
            OSError: the system starts none.
        """
        pid = os.fork()
        if pid == 0:
            self._run(run, leaving)
        handle = os.pidfd_open(pid)
        self._children[handle] = pid, None
        self._poll.register(handle, select.POLLIN)
        return handle

    def _run(self, run: Callable[[], None], leaving: int) -> NoReturn:
        code = 1
        try:
            self._sock.close()
            for handle, (_, told) in self._children.items():
                os.close(handle)
                if told is not None:
                    told.close()
            if self._spare is not None:
                self._spare[1].close()
            os.close(leaving)
            run()
            code = 0
        finally:
            os._exit(code)

    def _reap(self, handle: int) -> None:
        pid, told = self._children.pop(handle)
        self._poll.unregister(handle)
        if self._spare is not None and self._spare[0] == handle:
            self._dismiss()
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if told is not None:
            with told, contextlib.suppress(OSError):
                told.send(str(code).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))

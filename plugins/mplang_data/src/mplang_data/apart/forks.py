"""Server of confined processes: ``python -P -m mplang_data.apart.forks FD``.

It imports once what they need, has no file, key or connection but that to its client, and forks one
process for each thing that is to be done. So that takes milliseconds.

It is no :class:`mplang_worker.process.forks.ForkServer`, of which engines are children. That one
has in its memory what an owner prepares for sessions, and spare children that wait for one; what
reads the files of strangers is forked from a process that has neither. A request brings up to 250
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
from typing import NoReturn

from mplang_data.apart import child

PR_SET_NAME, NAME = 15, b"mplang-sources"
MAX_FILES = 250  # sent at once: the kernel takes 253


def main(number: int) -> None:
    """Serve until the client has gone.

    Args:
        number: descriptor of the socket to the client.
    """
    ctypes.CDLL(None).prctl(PR_SET_NAME, NAME)  # what ps shows
    for each in (signal.SIGINT, signal.SIGTERM):  # the client decides
        signal.signal(each, signal.SIG_IGN)
    importlib.import_module("mplang_data.source_reader").prepare()
    gc.freeze()  # so that a child does not copy it when it collects garbage
    _Server(socket.socket(fileno=number)).serve()


class _Server:
    """Forks a process for each request, and tells its end on a socket that came with the request.

    Args:
        sock: socket to the client.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._children: dict[int, tuple[int, socket.socket]] = {}  # by descriptors of processes

    def serve(self) -> None:
        """Serve until the client has gone, which ends all children."""
        while True:
            for ready, _ in self._poll.poll():
                if ready != self._sock.fileno():
                    self._reap(ready)
                elif not self._take():
                    return

    def _take(self) -> bool:
        _, files, _, _ = socket.recv_fds(self._sock, 1, MAX_FILES)
        if not files:
            return False
        told = socket.socket(fileno=files[0])
        me = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            told.send(f"{error}".encode())
            told.close()
        else:
            if pid == 0:
                self._run(me, files)
            handle = os.pidfd_open(pid)
            self._children[handle] = pid, told
            self._poll.register(handle, select.POLLIN)
            with contextlib.suppress(OSError):  # nobody waits for it any more
                socket.send_fds(told, [b"+"], [handle])
        for file in files[1:]:
            os.close(file)
        return True

    def _run(self, parent: int, files: list[int]) -> NoReturn:
        """Leave what is the server's, and do what is asked, in a child."""
        code = 1
        try:
            self._sock.close()
            for handle, (_, told) in self._children.items():
                os.close(handle)
                told.close()
            os.close(files[0])
            child.run(parent, files[1:])
            code = 0
        finally:
            os._exit(code)

    def _reap(self, handle: int) -> None:
        pid, told = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with told, contextlib.suppress(OSError):
            told.send(str(code).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Calls of the front to a process of the worker, and the answers."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mplang_http.ext import Buffer

from mplang_worker.base.errors import RequestError
from mplang_worker.wire import ipc

log = logging.getLogger("mplang.http.engine")


class FileReply(NamedTuple):
    """Reply that is a memory file.

    Attributes:
        descriptor: its descriptor, which is closed once it was sent.
    """

    descriptor: int


class StreamReply(NamedTuple):
    """Reply that is written to the socket that came with the call, once its size was told.

    Attributes:
        sock: the socket, which is closed then.
        parts: what is written, one after the other.
    """

    sock: socket.socket
    parts: Sequence[Buffer]

    def write(self) -> None:
        """Write all parts; the front may have closed its end, as whoever asked has gone."""
        with self.sock, contextlib.suppress(OSError):
            for part in self.parts:
                self.sock.sendall(part)


class CallServer:
    """Answers calls of the front. Safe for threads.

    Args:
        sock: socket to the front.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def answer(
        self,
        method: Callable[..., Any],
        message: dict[str, Any],
        file: int | None,
        *,
        is_socket: bool = False,
    ) -> None:
        """Call a method with the body and the arguments of a call, and answer it.

        Args:
            method: the method.
            message: the call.
            file: descriptor of its body, if that is large.
            is_socket: whether the file is a socket.
        """
        body: Buffer | socket.socket = message.get("body") or b""
        try:
            if file is not None:
                body = socket.socket(fileno=file) if is_socket else ipc.read_file(file)
            done = method(body, **message["args"])
        except BaseException as error:
            failure = RequestError.of(error)
            fields = [failure.status, failure.code, failure.text, failure.explain]
            self.send({"id": message["id"], "error": fields})
            if isinstance(body, socket.socket):
                body.close()
            return
        if isinstance(done, FileReply):
            self.send({"id": message["id"], "ok": None}, done.descriptor)
            os.close(done.descriptor)
        elif isinstance(done, StreamReply):
            self.send({"id": message["id"], "ok": sum(map(len, done.parts))})
            done.write()
        else:
            self.send({"id": message["id"], "ok": done})

    def send(self, message: dict[str, Any], file: int | None = None) -> None:
        """Send a message to the front; end this process if it is gone."""
        try:
            with self._lock:
                ipc.send(self._sock, message, file)
        except OSError:  # nobody would ever hear of it, so this process is of no use
            log.exception("the process cannot answer, and ends")
            os._exit(1)


def log_to(file: int) -> None:
    """Give up the party's log, which code that runs here could wipe, for a pipe to the front."""
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)

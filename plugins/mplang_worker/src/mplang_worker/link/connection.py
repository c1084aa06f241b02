"""Blocking TCP and TLS connections for one reading thread and any number of writing threads."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
import threading
import time
import weakref
from collections.abc import Sequence

from mplang_http.ext import Buffer

COALESCE = 16 << 10  # bytes up to which a head and its body are sent as one, a TLS record at most
MAX_POLL = 3600.0  # seconds


class _Files:
    """Files of a connection. They are closed when the last thread that uses them leaves them.

    The number of a file that is closed is that of the next one that is opened. What a thread
    writes that was suspended right before would go to another peer, what it reads be taken from it.
    """

    def __init__(self, sock: socket.socket, interrupts: int) -> None:
        self.closing = False
        self._users: list[None] = []  # it needs no lock: an append or a pop is one step
        # that of a connection that nobody closed; not at exit, when daemon threads may use it
        self._close = weakref.finalize(self, _close_files, sock, interrupts)
        self._close.atexit = False

    def __enter__(self) -> None:
        self._users.append(None)
        if self.closing:
            self.__exit__()
            raise OSError("the connection is closed")

    def __exit__(self, *_: object) -> None:
        self._users.pop()
        if self.closing and not self._users:
            self._close()


def _close_files(sock: socket.socket, interrupts: int) -> None:
    sock.close()
    os.close(interrupts)


class Connection:
    """TCP connection. One thread at a time reads; any other may end its waiting.

    Args:
        sock: the socket.
        write_timeout: timeout of a write in seconds, for peers that do not read.
        certificate: SHA-256 of the certificate of the peer's party, in hex; empty without TLS.

    Attributes:
        certificate: see above.
    """

    def __init__(self, sock: socket.socket, write_timeout: float, certificate: str = "") -> None:
        self._sock = sock
        self.certificate = certificate
        set_socket_options(sock, write_timeout)
        self._interrupts = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._files = _Files(sock, self._interrupts)
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)
        self._poll.register(self._interrupts, select.POLLIN)

    def write(self, parts: Sequence[Buffer]) -> None:
        """Write all parts.

        Raises:
            OSError: the connection is lost or closed, or the write times out.
        """
        with self._files:
            self._write(parts)

    def _write(self, parts: Sequence[Buffer]) -> None:
        size = sum(map(len, parts))
        if size <= COALESCE:
            parts = [b"".join(parts)]
            sent = self._sock.send(parts[0])
        else:
            sent = self._sock.sendmsg(parts)
        if sent == size:
            return
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
            else:
                view = memoryview(part)[sent:]
                sent = 0
                while len(view):
                    view = view[self._sock.send(view) :]

    def read_into(self, view: memoryview, deadline: float | None = None) -> int | None:
        """Wait for data, and read it into memory.

        Args:
            view: where to.
            deadline: until when to wait, of ``time.monotonic()``; ``None`` for ever.

        Returns:
            The number of bytes; 0 if the peer has closed the connection; ``None`` if nothing came
            before the deadline or an :meth:`interrupt`.

        Raises:
            OSError: the connection is lost or closed.
        """
        with self._files:
            return self._read_into(view, deadline)

    def _read_into(self, view: memoryview, deadline: float | None) -> int | None:
        return self._sock.recv_into(view) if self._readable(deadline) else None

    def _readable(self, deadline: float | None) -> bool:
        """Wait for data; return whether there is some."""
        found = False
        left = MAX_POLL if deadline is None else min(deadline - time.monotonic(), MAX_POLL)
        for file, _ in self._poll.poll(max(left, 0) * 1000):
            if file == self._interrupts:
                os.eventfd_read(self._interrupts)
                return False
            found = True
        return found

    def interrupt(self) -> None:
        """End the waiting of the thread that reads, or else that of the next one."""
        with contextlib.suppress(OSError), self._files:
            os.eventfd_write(self._interrupts, 1)

    def close(self) -> None:
        """Close the connection; blocked reads and writes return. Idempotent."""
        with contextlib.suppress(OSError), self._files:
            self._files.closing = True
            os.eventfd_write(self._interrupts, 1)
            # not that of SSLSocket, which drops TLS first: others would write plain text
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


class TlsConnection(Connection):
    """TLS connection. OpenSSL allows one thread at a time, so no thread blocks under the lock."""

    def __init__(self, sock: ssl.SSLSocket, write_timeout: float, certificate: str = "") -> None:
        super().__init__(sock, write_timeout, certificate)
        self._write_timeout = write_timeout
        self._tls = sock
        self._lock = threading.Lock()
        self._more = True  # there may be decrypted bytes, which no poll of the socket tells
        sock.setblocking(False)

    def _write(self, parts: Sequence[Buffer]) -> None:
        if len(parts) > 1 and sum(map(len, parts)) <= COALESCE:
            parts = [b"".join(parts)]
        for part in parts:
            view = memoryview(part)
            while len(view):
                view = view[self._send(view) :]

    def _read_into(self, view: memoryview, deadline: float | None) -> int | None:
        while self._more or self._readable(deadline):
            try:
                with self._lock:
                    self._more = False
                    count = self._tls.recv_into(view)
                    # after a full record another one is likely, and may be tried without a poll
                    self._more = count >= COALESCE or self._tls.pending() > 0
                    return count
            except ssl.SSLWantReadError:  # a part of a record
                continue
            except ssl.SSLWantWriteError:  # it asks for new keys, and does not read ours
                raise TimeoutError("the peer does not read") from None
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return 0
        return None

    def _send(self, view: memoryview) -> int:
        deadline = time.monotonic() + self._write_timeout
        while True:
            try:
                with self._lock:
                    return self._tls.send(view)
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the peer does not read")
            poll = select.poll()
            poll.register(self._tls.fileno(), wanted)
            poll.poll(left * 1000)


def set_socket_options(sock: socket.socket, write_timeout: float) -> None:
    """Disable Nagle's algorithm, and enable keepalive and write timeouts.

    Args:
        sock: TCP or Unix socket; only the write timeout applies to the latter.
        write_timeout: timeout in seconds.
    """
    sock.setblocking(True)
    seconds, millis = divmod(int(write_timeout * 1000), 1000)
    sock.setsockopt(
        socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, millis * 1000)
    )
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(write_timeout * 1000))

"""Blocking TCP and TLS connections for one reading thread and any number of writing threads."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence

from mplang_http.values import Buffer

COALESCE = 16 << 10  # bytes up to which a head and its body are sent as one TLS record


class Connection:
    """TCP connection.

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

    def write(self, parts: Sequence[Buffer]) -> None:
        """Write all parts.

        Raises:
            OSError: the connection is lost, or the write times out.
        """
        sent = self._sock.sendmsg(parts)
        if sent == sum(map(len, parts)):
            return
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
            else:
                view = memoryview(part)[sent:]
                sent = 0
                while len(view):
                    view = view[self._sock.send(view) :]

    def read_into(self, view: memoryview) -> int:
        """Wait for data, and read it into memory.

        Returns:
            The number of bytes; 0 if the peer has closed the connection.

        Raises:
            OSError: the connection is lost.
        """
        return self._sock.recv_into(view)

    def close(self) -> None:
        """Close the connection; blocked reads and writes return."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


class TlsConnection(Connection):
    """TLS connection. OpenSSL allows one thread at a time, so no thread blocks under the lock."""

    def __init__(self, sock: ssl.SSLSocket, write_timeout: float, certificate: str = "") -> None:
        super().__init__(sock, write_timeout, certificate)
        self._write_timeout = write_timeout
        self._tls = sock
        self._lock = threading.Lock()
        sock.setblocking(False)

    def write(self, parts: Sequence[Buffer]) -> None:
        """Write all parts.

        Raises:
            OSError: the connection is lost, or the write times out.
        """
        if len(parts) > 1 and sum(map(len, parts)) <= COALESCE:
            parts = [b"".join(parts)]
        for part in parts:
            view = memoryview(part)
            while len(view):
                view = view[
                    self._retry(lambda view=view: self._tls.send(view), self._write_timeout) :
                ]

    def read_into(self, view: memoryview) -> int:
        """Wait for data, and read it into memory.

        Returns:
            The number of bytes; 0 if the peer has closed the connection.

        Raises:
            OSError: the connection is lost.
        """
        try:
            return self._retry(lambda: self._tls.recv_into(view), None)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0

    def _retry(self, operation: object, write_timeout: float | None) -> int:
        deadline = None if write_timeout is None else time.monotonic() + write_timeout
        while True:
            try:
                with self._lock:
                    return int(operation())  # type: ignore[operator]
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("the peer does not read")
            poll = select.poll()
            poll.register(self._tls.fileno(), wanted)
            poll.poll(None if left is None else left * 1000)


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

"""Link handshake: ``GET /link`` with an HTTP upgrade, client and server side."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import time

from mplang_core.ext import CommError
from mplang_http.address import split_address
from mplang_http.config import WorkerConfig
from mplang_http.connection import Connection, TlsConnection
from mplang_http.tls import LINK_PROTOCOL, client_context, common_name, server_context

MAX_HEAD = 4096  # bytes
UPGRADE = "mplang-link/2"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class Handshake:
    """Client and server side of the link handshake of one worker.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._name = config.name
        self._peers = config.peers
        self._coordinators = config.coordinators
        self._timeouts = config.timeouts
        self._server = self._client = None
        if config.tls is not None:
            self._server = server_context(config.tls, LINK_PROTOCOL)
            self._client = client_context(config.tls, LINK_PROTOCOL)

    def dial(self, peer: str, address: str) -> Connection:
        """Connect to a worker, and upgrade the connection to a link.

        Args:
            peer: name of the worker, as in its certificate.
            address: address of the worker.

        Raises:
            OSError: the connection fails.
            CommError: the worker is another one, or rejects the link.
        """
        try:
            return self._dial(peer, address)
        except ValueError as error:  # such as a host name with two dots in a row
            raise CommError(f"no link to worker {peer} at {address}: {error}") from None

    def _dial(self, peer: str, address: str) -> Connection:
        sock = socket.create_connection(split_address(address), self._timeouts.connect)
        try:
            if self._client is not None:
                sock = self._client.wrap_socket(sock, server_hostname=peer)
                if common_name(sock.getpeercert()) != peer:
                    raise CommError(f"the certificate at {address} is of another worker")
            _send_head(
                sock,
                "GET /link HTTP/1.1",
                Host=peer,
                Connection="Upgrade",
                Upgrade=UPGRADE,
                X_Mplang_From=self._name,
                X_Mplang_To=peer,
            )
            status, _ = _read_head(sock, self._timeouts.connect)
            if " 101 " not in f"{status} ":
                raise CommError(f"worker {peer} refuses a link: {status[9:80]}")
            return self._wrap(sock)
        except BaseException:
            sock.close()
            raise

    def accept(self, sock: socket.socket) -> tuple[Connection, str]:
        """Upgrade an accepted connection to a link.

        Args:
            sock: socket of the connection.

        Returns:
            The connection, and the name of the peer.

        Raises:
            OSError: the connection fails.
            CommError: the client is no worker, or none that may link to this one.
        """
        try:
            sock.settimeout(self._timeouts.connect)
            if self._server is not None:
                sock = self._server.wrap_socket(sock, server_side=True)
            status, fields = _read_head(sock, self._timeouts.connect)
            peer = self._peer_name(sock, fields)
            rejection = self._rejection(peer, status, fields)
            if rejection:
                with contextlib.suppress(OSError):
                    _send_rejection(sock, rejection)
                raise CommError(f"a link of {peer!r} was refused: {rejection}")
            _send_head(
                sock, "HTTP/1.1 101 Switching Protocols", Connection="Upgrade", Upgrade=UPGRADE
            )
            return self._wrap(sock), peer
        except BaseException:
            sock.close()
            raise

    def _peer_name(self, sock: socket.socket, fields: dict[str, str]) -> str:
        """Return the common name of the peer's certificate; without TLS the name that it sends."""
        if isinstance(sock, ssl.SSLSocket):
            return common_name(sock.getpeercert()) or ""
        return fields.get("x-mplang-from", "")

    def _rejection(self, peer: str, status: str, fields: dict[str, str]) -> str | None:
        if not status.startswith("GET /link ") or fields.get("upgrade") != UPGRADE:
            return f"426 Upgrade to {UPGRADE}"
        if fields.get("x-mplang-to") != self._name:
            return f"421 This is {self._name}"
        if fields.get("x-mplang-from") != peer:
            return "403 The certificate is of another"
        if not _NAME.fullmatch(peer):
            return "403 No name of a worker"
        if self._peers is not None and peer not in self._peers:
            return "403 Not among the peers"
        if self._peers is None and peer in self._coordinators:
            return "403 A coordinator is no worker"
        if peer >= self._name:
            return "409 The worker whose name comes first connects"
        return None

    def _wrap(self, sock: socket.socket) -> Connection:
        write_timeout = self._timeouts.message
        if isinstance(sock, ssl.SSLSocket):
            return TlsConnection(sock, write_timeout)
        return Connection(sock, write_timeout)


def _send_head(sock: socket.socket, first: str, **fields: str) -> None:
    lines = [first, *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))


def _send_rejection(sock: socket.socket, status: str) -> None:
    text = json.dumps({"error": {"code": "link", "text": status[4:]}})
    _send_head(
        sock,
        f"HTTP/1.1 {status}",
        Connection="close",
        Upgrade=UPGRADE,
        Content_Type="application/json",
        Content_Length=str(len(text)),
    )
    sock.sendall(text.encode())


def _read_head(sock: socket.socket, timeout: float) -> tuple[str, dict[str, str]]:
    """Read the head of a request or response, byte by byte: the bytes after it are frames."""
    data, deadline = bytearray(), time.monotonic() + timeout
    while not data.endswith(b"\r\n\r\n"):
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        byte = sock.recv(1)
        if not byte or len(data) >= MAX_HEAD:
            raise CommError("the other end is no worker")
        data += byte
    first, *lines = data.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines if line)
    return first, {name.strip().lower(): value.strip() for name, _, value in fields}

"""Link handshake of one session: TLS with the session's key, then ``GET /link`` with an upgrade."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Sequence

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mplang_http.ext import LINK_PROTOCOL, UPGRADE

from mplang_core.ext import CommError
from mplang_worker.base.config import Timeouts
from mplang_worker.link.connection import Connection, TlsConnection
from mplang_worker.tls.credentials import LinkEnd

MAX_HEAD = 4096  # bytes
_VERSION = re.compile("mplang-link/[0-9]{1,3}")
_GET_LINK = b"GET /link "


class Handshake:
    """Client and server side of the link handshake of one session, at one party.

    Args:
        name: name of the party.
        link: name of its end of the links.
        timeouts: timeouts of the worker.
        tls: whether links are encrypted; then there is a key, which never leaves this process.
    """

    def __init__(self, name: str, link: str, timeouts: Timeouts, *, tls: bool) -> None:
        self._name = name
        self._link = link
        self._timeouts = timeouts
        self._key = ec.generate_private_key(ec.SECP256R1()) if tls else None
        self._certificate = ""
        self._contexts: dict[int, ssl.SSLContext] = {}
        self._peers: dict[str, LinkEnd] = {}
        self._introduced = threading.Event()

    @property
    def public_key(self) -> str | None:
        """The public key of the session in PEM; ``None`` without TLS."""
        if self._key is None:
            return None
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()

    def replaced(self, ends: Sequence[LinkEnd]) -> list[str]:
        """Return the names of the peers of which another end was introduced before.

        Args:
            ends: the ends of all parties' links.
        """
        return [end.name for end in ends if self._peers.get(end.name, end) != end]

    def introduce(self, ends: Sequence[LinkEnd]) -> None:
        """Take the ends of all parties' links, this one's included; links are accepted from now on.

        Args:
            ends: the ends; the front has verified them.
        """
        if self._key is not None:
            (self._certificate,) = (end.certificate for end in ends if end.name == self._name)
        self._peers = {end.name: end for end in ends if end.name != self._name}
        self._contexts = {}
        self._introduced.set()

    def context(self, role: int) -> ssl.SSLContext | None:
        """Return what TLS needs on a side; it takes a millisecond to make, so it is made once.

        Args:
            role: ``ssl.PROTOCOL_TLS_CLIENT`` or ``ssl.PROTOCOL_TLS_SERVER``.

        Returns:
            It, for the ends that were introduced last; ``None`` without TLS.
        """
        contexts = self._contexts
        if self._key is not None and role not in contexts:
            contexts[role] = self._new_context(role, self._key)
        return contexts.get(role)

    def _new_context(self, role: int, own_key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
        context = ssl.SSLContext(role)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # these are trusted, and no others
        context.set_alpn_protocols([LINK_PROTOCOL])
        key = own_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with open(os.memfd_create("key"), "wb") as file:  # ssl takes files only
            file.write(self._certificate.encode() + key)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        trusted = "".join(end.certificate for end in self._peers.values())
        if trusted:
            context.load_verify_locations(cadata=trusted)
        return context

    def dial(self, sock: socket.socket, peer: str) -> Connection:
        """Upgrade a connection to a peer to a link.

        Args:
            sock: socket of the connection.
            peer: name of the peer.

        Raises:
            OSError: the connection fails.
            CommError: the peer is another one, or rejects the link.
        """
        end = self._peers[peer]
        try:
            sock.settimeout(self._timeouts.connect)
            client = self.context(ssl.PROTOCOL_TLS_CLIENT)
            if client is not None:
                sock = client.wrap_socket(sock, server_hostname=end.link)
                self._check(sock, end)
            fields = {
                "X_Mplang_Link": end.link,
                "X_Mplang_From": self._name,
                "X_Mplang_From_Link": self._link,
            }
            _send_head(
                sock, "GET /link HTTP/1.1", Host=peer, Connection="Upgrade", Upgrade=UPGRADE,
                **fields,
            )  # fmt: skip
            status, _ = _read_head(sock, self._timeouts.connect)
            if " 101 " not in f"{status} ":
                raise CommError(
                    f"worker {peer} refuses a link of {UPGRADE}: {status[9:80]}", code="L004"
                )
            return self._wrap(sock, end)
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
            CommError: the client is not a peer of this session.
        """
        try:
            if not self._introduced.wait(self._timeouts.connect):
                raise CommError("a peer connected before this party knew its peers", code="L004")
            sock.settimeout(self._timeouts.connect)
            server = self.context(ssl.PROTOCOL_TLS_SERVER)
            if server is not None:
                sock = server.wrap_socket(sock, server_side=True)
            status, fields = _read_head(sock, self._timeouts.connect)
            end = self._peers.get(fields.get("x-mplang-from", ""))
            rejection = self._rejection(status, fields, end)
            if end is None or rejection:
                with contextlib.suppress(OSError):
                    _send_rejection(sock, rejection)
                raise CommError(f"a link was refused: {rejection}", code="L004")
            self._check(sock, end)
            _send_head(
                sock, "HTTP/1.1 101 Switching Protocols", Connection="Upgrade", Upgrade=UPGRADE
            )
            return self._wrap(sock, end), end.name
        except BaseException:
            sock.close()
            raise

    def _check(self, sock: socket.socket, end: LinkEnd) -> None:
        """Check that the other side has the key of one party; TLS checks that it is of a party."""
        if isinstance(sock, ssl.SSLSocket):
            found = sock.getpeercert(binary_form=True) or b""
            if found != ssl.PEM_cert_to_DER_cert(end.certificate):
                raise CommError(f"the certificate of a link is not that of {end.name}", code="L004")

    def _rejection(self, status: str, fields: dict[str, str], end: LinkEnd | None) -> str:
        version = fields.get("upgrade", "")
        if not status.startswith("GET /link ") or version != UPGRADE:
            told = version if _VERSION.fullmatch(version) else "another protocol"
            return f"426 Upgrade to {UPGRADE}, not {told}"
        if fields.get("x-mplang-link") != self._link:
            return "421 Another session"
        if end is None or fields.get("x-mplang-from-link") != end.link:
            return "403 No party of this session"
        if end.name >= self._name:
            return "409 The worker whose name comes first connects"
        return ""

    def _wrap(self, sock: socket.socket, end: LinkEnd) -> Connection:
        write_timeout = self._timeouts.message
        kind = TlsConnection if isinstance(sock, ssl.SSLSocket) else Connection
        return kind(sock, write_timeout, end.fingerprint)  # type: ignore[arg-type]


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
            raise CommError("the other end is not a worker", code="L004")
        data += byte
    return parse_head(bytes(data))


def parse_head(data: bytes) -> tuple[str, dict[str, str]]:
    """Return the first line of a head, and its fields with their names in lower case."""
    first, *lines = data.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines if line)
    return first, {name.strip().lower(): value.strip() for name, _, value in fields}


def link_in_head(data: bytes) -> str | None:
    r"""Return which end of a link a request without TLS is for.

    Args:
        data: its first bytes.

    Returns:
        The name; empty for another request, ``None`` if more bytes are needed.

    Example:
        >>> link_in_head(b"GET /link HTTP/1.1\r\nX-Mplang-Link: 5c1f\r\n\r\n")
        '5c1f'
    """
    if not data.startswith(_GET_LINK):
        return None if _GET_LINK.startswith(data) else ""
    head, end, _ = data.partition(b"\r\n\r\n")
    if not end:
        return None if len(data) < MAX_HEAD else ""
    return parse_head(head)[1].get("x-mplang-link", "")

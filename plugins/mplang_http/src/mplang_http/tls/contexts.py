"""TLS 1.3 with mutual authentication: contexts, certificate names and ALPN."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator

from mplang_core.ext import ConfigError
from mplang_http.base.config import TlsFiles

LINK_PROTOCOL = "mplang-link"
"""The ALPN protocol of a connection that is to become a link: the front tells it by this."""

MAX_HELLO = 16 << 10  # bytes of a client hello


def server_context(files: TlsFiles, *protocols: str) -> ssl.SSLContext:
    """Return a server context that requires client certificates.

    Args:
        files: certificate, key and authority.
        *protocols: ALPN protocols.

    Raises:
        ConfigError: a file cannot be read.
    """
    return _context(ssl.PROTOCOL_TLS_SERVER, files, protocols)


def client_context(files: TlsFiles, *protocols: str) -> ssl.SSLContext:
    """Return a client context that checks the server's name, and the revocation lists if any.

    Args:
        files: certificate, key and authority.
        *protocols: ALPN protocols.

    Raises:
        ConfigError: a file cannot be read.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT, files, protocols)
    if files.crl is not None:
        try:
            context.load_verify_locations(files.crl)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"cannot use the revocation lists {files.crl}: {error}") from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    return context


def check_key(file: str) -> None:
    """Check that a private key, if it is there, is its owner's alone.

    Raises:
        ConfigError: others may read it.
    """
    try:
        mode = os.stat(file).st_mode & 0o777
    except OSError:  # who loads it tells
        return
    if mode & 0o077:
        raise ConfigError(
            f"the key {file} may be read or written by others (mode {mode:o}); chmod 600 {file}"
        )


def _context(role: int, files: TlsFiles, protocols: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(role)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    check_key(files.key)
    try:
        context.load_cert_chain(files.cert, files.key)
        context.load_verify_locations(files.ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"cannot use the certificates {files.cert}, {files.key}, {files.ca}: {error}"
        ) from None
    if role == ssl.PROTOCOL_TLS_SERVER:
        # a ticket would make a connection readable, which a client takes for the response
        context.num_tickets = 0
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def link_in_hello(hello: bytes) -> str | None:
    """Return which end of a link a TLS client hello is for.

    The answer selects the process that does the handshake, and authenticates nobody.

    Args:
        hello: first bytes of the connection.

    Returns:
        The name; empty for another connection, ``None`` if more bytes are needed.
    """
    if len(hello) < 5:
        return None
    length = int.from_bytes(hello[3:5], "big")
    if hello[0] != 0x16 or length > MAX_HELLO:
        return ""
    if len(hello) < 5 + length:
        return None
    try:
        extensions = _extensions(hello[5 : 5 + length])
        if LINK_PROTOCOL.encode() not in _names(extensions.get(_ALPN, b""), 1):
            return ""
        # each name has a type, of which there is one
        return next(_names(extensions.get(_SERVER_NAME, b""), 3)).decode("ascii")
    except (IndexError, StopIteration, UnicodeDecodeError):
        return ""


_SERVER_NAME, _ALPN = 0, 16


def _extensions(message: bytes) -> dict[int, bytes]:
    at = 4 + 2 + 32  # type and length, version, random
    at += 1 + message[at]  # session
    at += 2 + int.from_bytes(message[at : at + 2], "big")  # ciphers
    at += 1 + message[at]  # compression
    at += 2
    found = {}
    while at + 4 <= len(message):
        kind, size = (int.from_bytes(message[at + i : at + i + 2], "big") for i in (0, 2))
        at += 4
        found[kind] = message[at : at + size]
        at += size
    return found


def _names(data: bytes, prefix: int) -> Iterator[bytes]:
    """Yield the names of a list, each after a prefix whose last two bytes or one are its length."""
    at = 2
    while at < len(data):
        size = int.from_bytes(data[at : at + prefix][-2:], "big")
        at += prefix
        yield data[at : at + size]
        at += size

"""Addressed end of a link in a TLS client hello."""

from __future__ import annotations

from collections.abc import Iterator

from mplang_http.ext import LINK_PROTOCOL

MAX_HELLO = 16 << 10  # bytes of a client hello


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

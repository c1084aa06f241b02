"""Worker addresses: parsing of ``https://host:port``."""

from __future__ import annotations

from urllib.parse import urlsplit

from mplang_core.ext import ConfigError


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``https://host:port``, ``http://host:port`` or ``host:port``.

    Raises:
        ConfigError: the address has another form.

    Example:
        >>> split_address("https://alice.example:9000")
        ('alice.example', 9000)
    """
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in ("", "http", "https"):
        raise ConfigError(f"an address is https://host:port, got {address[:100]!r}", code="C010")
    return host, port

"""Code of an engine (StableHLO, SQL, …) as an attribute: compressed text."""

from __future__ import annotations

import zlib

__all__ = ["pack", "unpack"]

MAX_CODE = 64 << 20  # bytes of text


def pack(text: str) -> bytes:
    """Compress text for an attribute; the same text gives the same bytes.

    Example:
        >>> unpack(pack("SELECT 1"))
        'SELECT 1'
    """
    return zlib.compress(text.encode(), 9)


def unpack(code: bytes) -> str:
    """Return the text of an attribute.

    Raises:
        ValueError: it is damaged, or larger than 64 MiB.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(code, MAX_CODE)
        if not stream.eof:
            raise ValueError(f"the code is cut short, or larger than {MAX_CODE} bytes")
        return data.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"the code is no compressed text: {error}") from error

"""Code of an engine (StableHLO, SQL, …) as an attribute: compressed text."""

from __future__ import annotations

import zlib

MAX_CODE = 16 << 20  # bytes of text


def pack(text: str) -> bytes:
    """Compress text for an attribute; the same text gives the same bytes.

    Example:
        >>> unpack(pack("SELECT 1"))
        'SELECT 1'
    """
    return zlib.compress(text.encode(), 9)


def unpack(code: bytes, largest: int = MAX_CODE) -> str:
    """Return the text of an attribute.

    Args:
        code: what :func:`pack` returned.
        largest: the maximum size of the text in bytes.

    Raises:
        ValueError: it is damaged, or the text is larger.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(code, largest)
        if not stream.eof:
            raise ValueError(f"the code is cut short, or larger than {largest} bytes")
        return data.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"the code is no compressed text: {error}") from error

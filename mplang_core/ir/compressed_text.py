"""Compressed text attributes for code of engines (StableHLO, SQL, …)."""

from __future__ import annotations

import zlib

MAX_CODE = 16 << 20  # bytes of text: a limit for code from peers, which may be a zip bomb


def pack(text: str) -> bytes:
    """Return compressed text for an attribute; equal text gives equal bytes.

    Args:
        text: any text.

    Example:
        >>> unpack(pack("SELECT 1"))
        'SELECT 1'
    """
    return zlib.compress(text.encode(), 9)


def unpack(code: bytes, largest: int = MAX_CODE) -> str:
    """Return the text of an attribute; the inverse of :func:`pack`.

    Args:
        code: compressed text.
        largest: the maximum size of the text in bytes.

    Raises:
        ValueError: the code is damaged, something follows it, or the text is larger.
    """
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(code, largest)
        if not stream.eof or stream.unused_data:
            raise ValueError(f"the code is cut short, or larger than {largest} bytes, or padded")
        return data.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"the code is not compressed text: {error}") from error

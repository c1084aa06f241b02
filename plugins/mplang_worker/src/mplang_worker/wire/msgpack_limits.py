"""Size limit of MessagePack documents: counts items without decoding."""

from __future__ import annotations

from mplang_http.ext import Buffer

from mplang_core.ext import WireError

_SIZES = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8}
_SIZES |= {0xCC + i: 1 << i % 4 for i in range(8)}  # integers
_SIZES |= {0xD4 + i: 1 + (1 << i) for i in range(5)}  # extensions of a fixed size
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}  # bytes, text
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}


def count_items(data: Buffer, limit: int) -> int:
    """Count the items of a MessagePack document: numbers, strings, lists and so on.

    An empty list has one byte in the document and 64 in memory, so the number of bytes is not a
    limit.

    Args:
        data: the document.
        limit: maximum number of items.

    Returns:
        The number of items.

    Raises:
        WireError: the document has more than ``limit`` items, or is malformed.

    Example:
        >>> count_items(bytes([0x92, 0x01, 0xA1, 0x61]), 10)
        3
    """
    view, at, count, left = memoryview(data), 0, 0, 1
    try:
        while left:
            count, left = count + 1, left - 1
            code = view[at]
            at += 1
            if code < 0x80 or code >= 0xE0:
                continue
            if 0xA0 <= code <= 0xBF:
                at += code & 0x1F
            elif code <= 0x9F:
                left += (code & 0x0F) * (1 if code >= 0x90 else 2)
            elif code in _SIZES:
                at += _SIZES[code]
            else:
                skip, more, width = _long(view, at, code)
                at, left = at + width + skip, left + more
            if count + left > limit:
                raise WireError(f"it is written with more than {limit} items", code="L005")
    except IndexError:
        raise WireError("it is cut short", code="L005") from None
    if at > len(view):
        raise WireError("it is cut short", code="L005")
    return count


def _long(view: memoryview, at: int, code: int) -> tuple[int, int, int]:
    """Return how many bytes and items follow, and the width of the length field."""
    for table, scale in ((_LENGTHS, 0), (_EXTENSIONS, 0), (_LISTS, 1), (_MAPS, 2)):
        width = table.get(code)
        if width is not None:
            if at + width > len(view):
                raise IndexError
            size = int.from_bytes(view[at : at + width], "big")
            if scale:
                return 0, size * scale, width
            return size + (table is _EXTENSIONS), 0, width
    raise WireError("it is not MessagePack", code="L005")

"""Shortening of foreign texts: where one is recorded or printed it takes little room."""

from __future__ import annotations

import hashlib
import json
from itertools import accumulate

MAX_SHORTENED = 200
"""Bytes of a name, a type or a source line that are recorded."""


def shortened(text: str, limit: int = MAX_SHORTENED) -> str:
    """Return a foreign text as it is recorded: cut if it is long, with its length and SHA-256.

    It is measured as JSON in ASCII, where a letter may take twelve bytes. Different texts stay
    different: one that is cut is longer than the limit, as no other is.

    Args:
        text: text from a program, a coordinator or a peer.
        limit: bytes that are left of it.

    Example:
        >>> shortened("pay")
        'pay'
        >>> shortened("pay" * 1000, 10)[:46]
        'paypaypayp… (3000 characters, SHA-256 116789b1'
    """
    if len(text) <= limit and _size(text) <= limit:
        return text
    begin = text[:limit]
    kept = sum(size <= limit for size in accumulate(map(_size, begin)))
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{begin[:kept]}… ({len(text)} characters, SHA-256 {digest})"


def _size(text: str) -> int:
    return len(json.dumps(text)) - 2  # without the quotes

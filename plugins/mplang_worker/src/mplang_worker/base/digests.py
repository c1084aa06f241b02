"""SHA-256 of plain data, which is the same for equal data at all parties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

# built at import: msgspec crashes if two threads are the first to use a type
_encoder = msgspec.msgpack.Encoder(order="deterministic")


def sha256(data: Sequence[Any] | Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain data, in hex.

    Example:
        >>> sha256({"a": 1, "b": 2}) == sha256({"b": 2, "a": 1})
        True
    """
    return hashlib.sha256(_encoder.encode(data)).hexdigest()

"""Padding of what is encrypted, so that the size of a ciphertext tells little of its value.

References:
    K. Nikitin et al., Reducing Metadata Leakage from Encrypted Files and Communication with
    PURBs, PETS 2019, section 4 (Padmé).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mplang_core import BaseType, TensorType

_BIN32 = b"\xc6"  # of MessagePack, followed by four bytes of length
_HEAD = len(_BIN32) + 4


class _Content(msgspec.Struct, array_like=True):
    """Value as it is encrypted; an earlier version wrote no padding."""

    header: dict[str, Any]
    buffers: list[bytes]
    padding: bytes = b""


_decoder = msgspec.msgpack.Decoder(_Content)


def padded_size(size: int) -> int:
    """Return the size to which bytes are padded: at most 12 % more, and few different sizes.

    The size is rounded up so that, of its binary digits, only as many of the first may be ones as
    it takes bits to write its length in bits.

    Args:
        size: bytes, at least one.

    Example:
        >>> [padded_size(n) for n in (9, 100, 1_000, 1_001, 1_000_000)]
        [10, 104, 1024, 1024, 1015808]
    """
    exponent = size.bit_length() - 1
    free = exponent - exponent.bit_length()
    mask = (1 << max(free, 0)) - 1
    return size + mask & ~mask


def write_content(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> bytes:
    """Return an encoded value as it is encrypted: padded, if its type does not tell its size.

    Args:
        kind: the type of the value.
        header: of its encoding.
        buffers: of its encoding.

    Raises:
        msgspec.EncodeError: a buffer has 4 GiB or more.
    """
    plain: bytes = msgspec.msgpack.encode((header, buffers), order="deterministic")
    if isinstance(kind, TensorType):
        return plain
    more = padded_size(len(plain) + _HEAD) - len(plain) - _HEAD
    array_of_three = bytes([plain[0] + 1])
    return b"".join([array_of_three, memoryview(plain)[1:], _BIN32, more.to_bytes(4), bytes(more)])


def read_content(plain: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return header and buffers of what was encrypted.

    Args:
        plain: what :func:`write_content` returned, or an earlier version encrypted.

    Raises:
        msgspec.MsgspecError: it is malformed.
    """
    found = _decoder.decode(plain)
    return found.header, found.buffers

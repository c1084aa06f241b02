"""Numbers that stand for keys: equal for equal keys, and random for rows that have none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from mplang_core.ext import KernelError
from mplang_joins.ops import BITS

Array = np.ndarray[Any, Any]


def tokens_of(keys: pa.Array, salt: bytes, *, rows: int, side: int, sides: int) -> Array:
    """Return a number for each key of a side, and for each row that pads it.

    It is BLAKE2b (RFC 7693), keyed by the salt that all sides have, cut to 61 bits of two sides and
    to fewer of more: of 10^5 keys two different ones become one with a chance of 2^-27. Random
    numbers stand for rows without a key and for padding, which so equal nothing.

    Args:
        keys: the key of each row as bytes, null if it has none.
        salt: random bytes that all sides have.
        rows: how many numbers are wanted, at least one for each row.
        side: the number of the side, from 0.
        sides: how many there are.

    Returns:
        ``token * 2^b + side`` for the ``b`` bits that number the sides; int64 of shape ``[rows]``.

    Raises:
        KernelError: two rows have one key.

    Example:
        >>> keys = pa.array([b"ann", None], pa.large_binary())
        >>> a, b = (tokens_of(keys, b"salt", rows=3, side=side, sides=2) for side in (0, 1))
        >>> (b - a == 1).tolist()
        [True, False, False]
    """
    shift = np.uint64((sides - 1).bit_length())
    cut = np.uint64(64 - BITS) + shift
    hashed = _hashed(keys.drop_null().to_pylist(), salt) >> cut
    if len(np.unique(hashed)) < len(hashed):
        raise KernelError(
            "joins.enter: two rows have one key; a join takes one row for each key, so aggregate "
            "by the key first, at the party of the table",
            code="R009",
        )
    has_key = np.zeros(rows, bool)
    has_key[: len(keys)] = keys.is_valid()
    tokens = np.empty(rows, np.uint64)
    tokens[has_key] = hashed
    tokens[~has_key] = _others(hashed, rows - len(hashed), cut)
    return (tokens << shift | np.uint64(side)).astype(np.int64)


def _hashed(keys: Sequence[bytes], salt: bytes) -> Array:
    begun = hashlib.blake2b(key=salt, digest_size=8)
    digests = []
    for key in keys:
        each = begun.copy()
        each.update(key)
        digests.append(each.digest())
    return np.frombuffer(b"".join(digests), np.uint64)


def _others(taken: Array, count: int, cut: np.uint64) -> Array:
    """Return random tokens that differ from each other and from those that are taken."""
    others: Array = np.empty(0, np.uint64)
    while len(others) < count:
        drawn = np.frombuffer(os.urandom(8 * count), np.uint64) >> cut
        others = np.union1d(others, drawn[~np.isin(drawn, taken)])
    return others[:count]

"""Reconstruction of tensors from shares, in NumPy: what peers sent never comes into native code.

The elements of a field of k bits are integers mod 2^k: the sum or the XOR of the parties' pieces. A
number with f fraction bits is such an integer, signed, over 2^f.

References:
    libspu: ``fromShares`` of each protocol's ``io.cc``, and ``decodeFromRing`` in ``encoding.cc``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mplang_core.ext import RunError
from mplang_spu.config import BITS
from mplang_spu.shares import BLOCK, SpuShare
from mplang_spu.storage import Storage

Array: TypeAlias = np.ndarray[Any, Any]
Words: TypeAlias = Sequence[Array]


def reconstruct(shares: Sequence[SpuShare]) -> Array:
    """Reconstruct a tensor from the shares of all parties.

    Args:
        shares: one of each party, in their order.

    Returns:
        The tensor, with the shape and element type of the plain type.

    Raises:
        RunError: the shares do not belong together.
    """
    kind = shares[0].type
    _check_alike(shares)
    storage, ring = shares[0].layout, BITS[kind.field]
    result = np.empty(kind.plain.size, kind.plain.dtype.numpy)
    for at in range(0, result.size, BLOCK):
        block = result[at : at + BLOCK]
        pieces = [_first_piece(share.block(at, block.size), storage) for share in shares]
        if storage.form == "public":
            _check_equal(pieces, shares)
            words = pieces[0]
        else:
            words = _wide(functools.reduce(_SUMS[storage.form], pieces), ring)
        block[:] = _decode(words, block.dtype, kind.fxp)
    return result.reshape(kind.plain.shape)


def _check_alike(shares: Sequence[SpuShare]) -> None:
    names = {rank: each.storage for rank, each in zip(shares[0].type.parties, shares, strict=True)}
    if len(set(names.values())) > 1:
        listed = ", ".join(f"{name} at party {rank}" for rank, name in names.items())
        raise RunError(
            f"the shares of {shares[0].type.plain} do not belong together: they are stored as "
            f"{listed}. A party sent another share than that of this value",
            code="R015",
        )


def _check_equal(copies: Sequence[Words], shares: Sequence[SpuShare]) -> None:
    """Refuse numbers that depend on no secret, and yet are not the same at all parties."""
    ranks = list(shares[0].type.parties)
    for rank, other in zip(ranks[1:], copies[1:], strict=True):
        if not all(map(np.array_equal, copies[0], other)):
            raise RunError(
                f"parties {ranks[0]} and {rank} hold different numbers of a public "
                f"{shares[0].type.plain}, which are the same at all parties; one of them computed "
                "or sent another one",
                code="R015",
            )


# -- elements of the ring, as little-endian words of at most 64 bits


def _first_piece(block: memoryview, storage: Storage) -> Words:
    """Return the words of a party's first piece of each element, the lowest word first."""
    word = min(storage.bits, 64)
    found = np.frombuffer(block, f"<u{word // 8}")
    found = found.reshape(-1, storage.pieces, storage.bits // word)
    return [found[:, 0, i] for i in range(storage.bits // word)]


def _add(x: Words, y: Words) -> Words:
    low = x[0] + y[0]
    return [low] if len(x) == 1 else [low, x[1] + y[1] + (low < x[0])]


def _xor(x: Words, y: Words) -> Words:
    return [a ^ b for a, b in zip(x, y, strict=True)]


_SUMS: dict[str, Callable[[Words, Words], Words]] = {"arithmetic": _add, "boolean": _xor}


def _wide(words: Words, bits: int) -> Words:
    """Return the words of a ring element of which a boolean share has the lowest bits."""
    words = [word.astype(f"u{min(bits, 64) // 8}", copy=False) for word in words]
    return words if len(words) == max(bits // 64, 1) else [*words, np.zeros_like(words[0])]


# -- numbers


def _decode(words: Words, dtype: np.dtype[Any], fxp: int) -> Array:
    """Return the numbers that elements of the ring stand for."""
    if dtype.kind == "b":
        return (words[0] & 1).astype(bool)
    if dtype.kind != "f":
        return words[0].astype(dtype)
    signed = words[0].view(f"i{words[0].itemsize}").astype(np.float64)
    steps = signed if len(words) == 1 else double(words[0], words[1])
    with np.errstate(over="ignore"):  # infinity, as of any number that float16 does not hold
        return np.asarray(np.ldexp(steps, -fxp)).astype(dtype)


def double(low: Array, high: Array) -> Array:
    """Round signed integers of 128 bits to the nearest float64, ties to even.

    Args:
        low: their lower words, uint64.
        high: their upper words, uint64.

    Example:
        >>> double(np.uint64([1, 2**64 - 1]), np.uint64([1, 2**64 - 1])).tolist()
        [1.8446744073709552e+19, -1.0]
    """
    negative = high >> 63 == 1
    low, high = np.where(negative, -low, low), np.where(negative, ~high + (low == 0), high)
    # the highest bit of the number moves to bit 63 or 62, and what is below stays as one bit
    shift = np.clip(64 - np.frexp(high.astype(np.float64))[1], 0, 64).astype(np.uint64)
    small = high == 0
    top = np.where(small, low, high << (shift % 64) | low >> 1 >> (63 - shift % 64))
    rest = np.where(small, 0, low << (shift % 64)) != 0
    size = np.ldexp(
        (top | rest).astype(np.float64), np.where(small, 0, 64 - shift.astype(np.int64))
    )
    return np.asarray(np.where(negative, -size, size))

"""Sharing and reconstruction of tensors in blocks.

Of a large tensor, libspu holds several copies meanwhile, and Python's lock; blocks take less than
half of that memory and time. A share's data is that of its elements, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mplang_spu import engine
from mplang_spu.libspu import Io, libspu
from mplang_spu.share_type import ShareType
from mplang_spu.shares import CHUNK, SpuShare, header, storage_of

Array: TypeAlias = np.ndarray[Any, Any]

BLOCK = 1 << 16  # elements; a power of two as their sizes are, so that no block is in two chunks


def make_shares(io: Io, x: Array, kind: ShareType) -> tuple[SpuShare, ...]:
    """Split a tensor into one share per party.

    Args:
        io: of the type of the shares.
        x: the tensor.
        kind: the type of the shares.

    Returns:
        The shares, in the order of the parties.
    """
    if x.size <= BLOCK:
        made = io.make_shares(np.asarray(x, order="C"), engine.visibility(True))
        return tuple(SpuShare(kind, piece.meta, tuple(piece.share_chunks)) for piece in made)
    flat = np.asarray(x, order="C").reshape(-1)
    first = io.make_shares(flat[:1], engine.visibility(True))[0].meta
    _, width = storage_of(first, kind)
    per_chunk = CHUNK // width
    chunks: list[list[bytes]] = [[] for _ in kind.parties]
    for at in range(0, x.size, per_chunk):
        buffers = [bytearray(header(x.size * width, at * width)) for _ in chunks]
        _fill(buffers, io, flat[at : at + per_chunk], width)
        for mine in chunks:
            mine.append(bytes(buffers.pop(0)))  # one after the other: each is free after its copy
    return tuple(SpuShare(kind, _of_shape(first, x.shape), tuple(mine)) for mine in chunks)


def _fill(buffers: Sequence[bytearray], io: Io, x: Array, width: int) -> None:
    """Append the data of the parties' shares of each block to their buffers."""
    for at in range(0, x.size, BLOCK):
        block = x[at : at + BLOCK]
        head = len(header(block.size * width, 0))
        made = io.make_shares(block, engine.visibility(True))
        for buffer, piece in zip(buffers, made, strict=True):
            buffer += memoryview(piece.share_chunks[0])[head:]


def reconstruct(io: Io, shares: Sequence[SpuShare]) -> Array:
    """Reconstruct a tensor from the shares of all parties.

    Args:
        io: of the type of the shares.
        shares: one of each party, in their order.

    Returns:
        The tensor, with the shape and element type of the plain type.
    """
    plain = shares[0].type.plain
    if plain.size <= BLOCK:
        found = io.reconstruct([engine.share(piece.meta, piece.chunks) for piece in shares])
        return np.asarray(found).astype(plain.dtype.numpy, copy=False).reshape(plain.shape)
    result = np.empty(plain.size, plain.dtype.numpy)
    for at in range(0, plain.size, BLOCK):
        block = result[at : at + BLOCK]
        block[:] = io.reconstruct([_block_of(share, at, block.size) for share in shares])
    return result.reshape(plain.shape)


def _block_of(share: SpuShare, at: int, size: int) -> Any:
    """Return libspu's share of some elements."""
    _, width = storage_of(share.meta, share.type)
    total = share.type.plain.size * width
    number, start = divmod(at * width, CHUNK)
    start += len(header(total, number * CHUNK))
    data = memoryview(share.chunks[number])[start : start + size * width]
    return engine.share(_of_shape(share.meta, (size,)), [header(len(data), 0) + bytes(data)])


def _of_shape(meta: bytes, shape: Sequence[int]) -> bytes:
    """Return the description of a share of another shape."""
    made = libspu.ValueMeta()
    made.ParseFromString(meta)
    made.shape.dims = list(shape)
    found: bytes = made.SerializeToString()
    return found

"""Sharing of tensors in blocks.

Of a large tensor, libspu holds several copies meanwhile, and Python's lock; blocks take less than
half of that memory and time. A share's data is that of its elements, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from mplang_spu import engine
from mplang_spu.conversion import from_libspu
from mplang_spu.libspu import Io
from mplang_spu.share_type import ShareType
from mplang_spu.shares import BLOCK, CHUNK, SpuShare, header

Array: TypeAlias = np.ndarray[Any, Any]


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
        return tuple(from_libspu(piece, kind) for piece in made)
    flat = np.asarray(x, order="C").reshape(-1)
    of_one = replace(kind, plain=replace(kind.plain, shape=(1,)))
    storage = from_libspu(io.make_shares(flat[:1], engine.visibility(True))[0], of_one).layout
    per_chunk, width = CHUNK // storage.nbytes, storage.nbytes
    chunks: list[list[bytes]] = [[] for _ in kind.parties]
    for at in range(0, x.size, per_chunk):
        buffers = [bytearray(header(x.size * width, at * width)) for _ in chunks]
        _fill(buffers, io, flat[at : at + per_chunk], width)
        for mine in chunks:
            mine.append(bytes(buffers.pop(0)))  # one after the other: each is free after its copy
    return tuple(SpuShare(kind, storage.name, tuple(mine)) for mine in chunks)


def _fill(buffers: Sequence[bytearray], io: Io, x: Array, width: int) -> None:
    """Append the data of the parties' shares of each block to their buffers."""
    for at in range(0, x.size, BLOCK):
        block = x[at : at + BLOCK]
        head = len(header(block.size * width, 0))
        made = io.make_shares(block, engine.visibility(True))
        for buffer, piece in zip(buffers, made, strict=True):
            buffer += memoryview(piece.share_chunks[0])[head:]

"""Ops of a dishonest party, imported by the workers under test."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
from mplang_testing.waiting import pause

from mplang_core import TensorType, simple_op
from mplang_core.runtime import KernelContext, kernel
from mplang_core.types import BaseType

__all__ = ["ask", "bend", "take"]

OP_INDICES = range(8)
LOOKS = 50  # for a response that must not come


@simple_op("evil.ask")
def ask(x: TensorType) -> TensorType:
    """Request the value of every later shuffle from party 0."""
    return x


@kernel("evil.ask")
def ask_kernel(ctx: KernelContext, x: Any) -> Any:
    for op_index in OP_INDICES:
        ctx.interpreter.communicator.send(0, f"{ctx.run}/{op_index}?", True)
    return x


@simple_op("evil.take")
def take(x: TensorType) -> TensorType:
    """Return the response of party 0, or else the operand."""
    return x


@kernel("evil.take")
def take_kernel(ctx: KernelContext, x: Any) -> Any:
    comm = ctx.interpreter.communicator
    for _ in range(LOOKS):
        for op_index in OP_INDICES:
            found = comm.peek_message(0, f"{ctx.run}/{op_index}")
            if found is not None:
                return np.asarray(found)
        pause(0.02, "party 0 has its turn to answer")
    return x


@simple_op("evil.bend")
def bend(share: BaseType, *, seed: int) -> BaseType:
    """Return a share that does not match its type."""
    return share


@kernel("evil.bend")
def bend_kernel(ctx: KernelContext, share: Any, *, seed: int) -> Any:
    return corrupt_share(share, seed)


@simple_op("evil.store")
def store(share: BaseType, *, storage: str, size: int) -> BaseType:
    """Return a share of its type, with a storage type that differs from the other parties'."""
    return share


@kernel("evil.store")
def store_kernel(ctx: KernelContext, share: Any, *, storage: str, size: int) -> Any:
    from spu import libspu

    meta, chunk = libspu.ValueMeta(), libspu.ValueChunk()
    meta.ParseFromString(share.meta)
    meta.storage_type = storage
    chunk.total_bytes, chunk.content = size, b"\xfe" * size
    return replace(share, meta=meta.SerializeToString(), chunks=(chunk.SerializeToString(),))


def corrupt_share(share: Any, seed: int) -> Any:
    """Corrupt the metadata or the data of a share."""
    from spu import libspu

    dice = random.Random(seed)
    meta = libspu.ValueMeta()
    meta.ParseFromString(share.meta)
    dims, chunks = list(meta.shape.dims), list(share.chunks)
    match dice.randrange(8):
        case 0:
            meta.shape.dims = [dice.choice([1, 10, 1000, 1 << 40]), *dims]
        case 1:
            meta.shape.dims = [dims[0] * dice.choice([0, 2, 1000]), *dims[1:]]
        case 2:
            kinds = [kind for kind in _data_types(libspu) if kind != meta.data_type]
            meta.data_type = dice.choice(kinds)
        case 3:
            meta.visibility = libspu.Visibility.VIS_PUBLIC
        case 4:
            meta.storage_type = dice.choice(_STORAGES)
        case 5:
            chunks[0] = chunks[0][: dice.randrange(len(chunks[0]))]
        case 6:
            chunks = dice.choice([[], chunks * 2, [chunks[0] + b"\0" * 8]])
        case 7:
            damaged = bytearray(share.meta)
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
            return replace(share, meta=bytes(damaged))
    return replace(share, meta=meta.SerializeToString(), chunks=tuple(chunks))


def _data_types(libspu: Any) -> list[Any]:
    names = ("DT_I1", "DT_I8", "DT_U8", "DT_I16", "DT_I32", "DT_I64", "DT_F16", "DT_F32", "DT_F64")
    return [getattr(libspu.DataType, name) for name in names]


_STORAGES = (
    "",
    "Pub2k<FM64>",
    "semi2k.AShr<FM128>",
    "aby3.AShr<FM32>",
    "aby3.BShr<PT_U128,128>",
    "aby3.BShr<PT_U8,9>",
    "cheetah.BShr<FM64,0>",
    "cheetah.BShr<FM64,65>",
    "securenn.AShr<FM64>",
    "cheetah.AShr<FM64> ",
    "X" * 1000,
)

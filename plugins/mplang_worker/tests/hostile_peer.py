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
    from mplang_spu.shares import header

    return replace(share, storage=storage, chunks=(header(size, 0) + b"\xfe" * size,))


def corrupt_share(share: Any, seed: int) -> Any:
    """Corrupt the storage or the data of a share."""
    dice = random.Random(seed)
    chunks = list(share.chunks)
    match dice.randrange(4):
        case 0:
            return replace(share, storage=dice.choice(_STORAGES))
        case 1:
            chunks[0] = chunks[0][: dice.randrange(len(chunks[0]))]
        case 2:
            chunks = dice.choice([[], chunks * 2, [chunks[0] + b"\0" * 8]])
        case 3:
            damaged = bytearray(share.storage, "ascii")
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(7)
            return replace(share, storage=damaged.decode())
    return replace(share, chunks=tuple(chunks))


_STORAGES = (
    "",
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

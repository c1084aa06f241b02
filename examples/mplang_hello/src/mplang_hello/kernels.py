"""What the ops of ``hello`` do at a party.

A kernel gets where it runs, then the operands by position and the attributes by keyword. Operands
are read only. An error is told to others without its text, and stands in this party's log.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
from mplang_core import TensorType
from mplang_core.ext import KernelContext

from mplang_hello.rate import Rate
from mplang_hello.types import Half, HalfType, Summary, SummaryType

Array: TypeAlias = np.ndarray[Any, Any]


def summarize(ctx: KernelContext, x: Array, *, digits: int) -> Summary:
    """Look through the elements."""
    numbers = np.asarray(x, np.float64)
    least, mean, greatest = (
        round(float(number), digits) for number in (numbers.min(), numbers.mean(), numbers.max())
    )
    return Summary(SummaryType(TensorType.of(x)), least, mean, greatest)


def split(ctx: KernelContext, x: Array) -> tuple[Half, Half]:
    """Draw a pad from the operating system, and put the tensor's bytes under it."""
    kind = HalfType(TensorType.of(x))
    pad = os.urandom(x.nbytes)
    return Half(kind, pad), Half(kind, _xor(pad, x.tobytes()))


def join(ctx: KernelContext, a: Half, b: Half) -> Array:
    """Take the pad off."""
    plain = a.type.plain
    return np.frombuffer(_xor(a.data, b.data), plain.dtype.numpy).reshape(plain.shape)


def pick(ctx: KernelContext, x: Half, *, row: int) -> Half:
    """Cut the row's bytes out of this half; the other member does the same."""
    plain = x.type.plain
    kind = HalfType(TensorType(plain.dtype, plain.shape[1:]))
    return Half(kind, x.data[row * kind.nbytes : (row + 1) * kind.nbytes])


def convert(ctx: KernelContext, x: Array, *, rate: Rate) -> Array:
    """Multiply."""
    return np.asarray(x, np.float64) * rate.above / rate.below


def _xor(a: bytes, b: bytes) -> bytes:
    return np.bitwise_xor(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)).tobytes()

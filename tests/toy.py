"""A small NumPy dialect, so that the core is tested with no plugin but the simulator.

``toy.rank`` gives each party its own rank: the way to values that differ between parties.
"""

from __future__ import annotations

import numpy as np

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.runtime import KernelContext


def _same(x: TensorType, y: TensorType) -> None:
    if x != y:
        raise TypeError(f"expected two of one type, got {x} and {y}")


@mp.simple_op("toy.add", reads=(), total=True)
def add(x: TensorType, y: TensorType) -> TensorType:
    """Adds."""
    _same(x, y)
    return x


@mp.simple_op("toy.mul", reads=(), total=True)
def mul(x: TensorType, y: TensorType) -> TensorType:
    """Multiplies."""
    _same(x, y)
    return x


@mp.simple_op("toy.less", reads=(), total=True)
def less(x: TensorType, y: TensorType) -> TensorType:
    """Compares."""
    _same(x, y)
    return TensorType("bool", x.shape)


@mp.simple_op("toy.scale", reads=(), total=True)
def scale(x: TensorType, *, by: int = 2) -> TensorType:
    """Multiplies by an attribute."""
    return x


@mp.simple_op("toy.divmod", reads=(), total=True)
def divide(x: TensorType, y: TensorType) -> tuple[TensorType, TensorType]:
    """Gives quotient and remainder."""
    _same(x, y)
    return x, x


@mp.simple_op("toy.rank", reads=("rank",), total=True)
def rank() -> TensorType:
    """Gives the party's rank."""
    return TensorType("i64")


@mp.simple_op("toy.next_rank", reads=(), total=True)
def next_rank(x: TensorType) -> TensorType:
    """Gives the rank after a rank, round about."""
    return x


@mp.simple_op("toy.fail_at", reads=())
def fail_at(x: TensorType, *, party: int) -> TensorType:
    """Raises at one party."""
    return x


@mp.simple_op("toy.lie", reads=())
def lie(x: TensorType) -> TensorType:
    """Promises its operand's type, and gives another."""
    return x


@mp.kernel("toy.add")
def _add(ctx: KernelContext, x, y):
    return np.asarray(x + y)


@mp.kernel("toy.mul")
def _mul(ctx: KernelContext, x, y):
    return np.asarray(x * y)


@mp.kernel("toy.less")
def _less(ctx: KernelContext, x, y):
    return np.asarray(x < y)


@mp.kernel("toy.scale")
def _scale(ctx: KernelContext, x, *, by):
    return np.asarray(x * by)


@mp.kernel("toy.divmod")
def _divide(ctx: KernelContext, x, y):
    return np.asarray(x // y), np.asarray(x % y)


@mp.kernel("toy.rank")
def _rank(ctx: KernelContext):
    return np.asarray(ctx.interpreter.rank)


@mp.kernel("toy.next_rank")
def _next_rank(ctx: KernelContext, x):
    return np.asarray((x + 1) % ctx.interpreter.world_size)


@mp.kernel("toy.fail_at")
def _fail_at(ctx: KernelContext, x, *, party):
    if ctx.interpreter.rank == party:
        raise RuntimeError(f"the secret is {x}")
    return x


@mp.kernel("toy.lie")
def _lie(ctx: KernelContext, x):
    return np.zeros(99)

"""A small NumPy dialect, ``kit``: what :class:`~mplang_testing.BackendSuite` runs.

A worker in a process of its own imports this module before it is tested; it needs nothing but
the core.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mplang_core import TensorType, kernel, simple_op
from mplang_core.ext import Effects, KernelContext
from mplang_testing.secrets import KeyType, Secret, ShareType
from mplang_testing.waiting import pause

SECRET = "a detail that stays with its party"

_TENSOR = {"kind": "Tensor"}
_ONE: dict[str, Any] = {"outputs": (_TENSOR,)}
_UNARY: dict[str, Any] = {"inputs": (_TENSOR,), **_ONE}
_BINARY: dict[str, Any] = {"inputs": (_TENSOR, _TENSOR), **_ONE}


def _same(x: TensorType, y: TensorType) -> TensorType:
    if x != y:
        raise TypeError(f"expected two of one type, got {x} and {y}")
    return x


@simple_op("kit.add", effects=Effects.NONE, reads=(), total=True, **_BINARY)
def add(x: TensorType, y: TensorType) -> TensorType:
    """Adds two tensors of one type.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda x: mp.invoke(add, x, x), np.int64(4)))
        [array(8), array(8)]
    """
    return _same(x, y)


@simple_op("kit.mul", effects=Effects.NONE, reads=(), total=True, **_BINARY)
def mul(x: TensorType, y: TensorType) -> TensorType:
    """Multiplies two tensors of one type, element by element.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda x: mp.invoke(mul, x, x), np.int64(4)))
        [array(16)]
    """
    return _same(x, y)


@simple_op("kit.less", effects=Effects.NONE, reads=(), total=True, **_BINARY)
def less(x: TensorType, y: TensorType) -> TensorType:
    """Tells where the first of two tensors is smaller.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda x: mp.invoke(less, x, x), np.int64(4)))
        [array(False)]
    """
    return TensorType("bool", _same(x, y).shape)


@simple_op("kit.rank", effects=Effects.NONE, reads=(), total=True, **_ONE)
def rank() -> TensorType:
    """Gives each party its own rank: the way to values that differ between parties.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(3)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda: mp.simp.pcall_static([1, 2], rank)))
        [None, array(1), array(2)]
    """
    return TensorType("i64")


@simple_op("kit.fail_at", reads=(), **_UNARY)
def fail_at(x: TensorType, *, party: int) -> TensorType:
    """Gives the operand back, and raises at one party.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as host:
        ...     mp.evaluate(host, lambda x: mp.invoke(fail_at, x, party=1), np.int64(4))
        Traceback (most recent call last):
        mplang_core.errors.PartyError: party 1 failed in kit.fail_at at ...
    """
    return x


@simple_op("kit.late", reads=(), **_UNARY)
def late(x: TensorType, *, party: int, seconds: float) -> TensorType:
    """Gives the operand back, and takes its time at one party.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as host:
        ...     slow = lambda x: mp.invoke(late, x, party=1, seconds=0.01)
        ...     mp.fetch(host, mp.evaluate(host, slow, np.int64(4)))
        [array(4), array(4)]
    """
    return x


@simple_op("kit.share", reads=(), inputs=(_TENSOR,), outputs=({"kind": "Any"},))
def share(x: TensorType) -> ShareType:
    """Gives what a host may not fetch, as it is a share.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda x: mp.invoke(share, x), np.int64(4)))
        Traceback (most recent call last):
        mplang_core.errors.DisclosureError: ... is a share; secret values cannot be fetched...
    """
    return ShareType()


@simple_op("kit.make_key", effects=Effects.FRESH, reads=(), outputs=({"kind": "Any"},))
def make_key() -> KeyType:
    """Gives what a host may not fetch, as it is a key.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda: mp.invoke(make_key)))
        Traceback (most recent call last):
        mplang_core.errors.DisclosureError: ... is a key; secret values cannot be fetched...
    """
    return KeyType()


@kernel("kit.share")
def _share(ctx: KernelContext, x: Any) -> Any:
    return Secret(ShareType(), np.resize(x, 1).tobytes())


@kernel("kit.make_key")
def _make_key(ctx: KernelContext) -> Any:
    return Secret(KeyType(), os.urandom(8))


@kernel("kit.add")
def _add(ctx: KernelContext, x: Any, y: Any) -> Any:
    return np.asarray(x + y)


@kernel("kit.mul")
def _mul(ctx: KernelContext, x: Any, y: Any) -> Any:
    return np.asarray(x * y)


@kernel("kit.less")
def _less(ctx: KernelContext, x: Any, y: Any) -> Any:
    return np.asarray(x < y)


@kernel("kit.rank")
def _rank(ctx: KernelContext) -> Any:
    return np.asarray(ctx.interpreter.rank)


@kernel("kit.fail_at")
def _fail_at(ctx: KernelContext, x: Any, *, party: int) -> Any:
    if ctx.interpreter.rank == party:
        raise RuntimeError(f"{SECRET}: {x}")
    return x


@kernel("kit.late")
def _late(ctx: KernelContext, x: Any, *, party: int, seconds: float) -> Any:
    if ctx.interpreter.rank == party:
        pause(seconds, "the time that this party takes")
    return x

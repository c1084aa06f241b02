"""``simp.bounded``: a declared range, checked by who has the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from mplang_core.errors import RunError
from mplang_core.feop import simple_op
from mplang_core.ir import Effects, Operation
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import DeclaredRange
from mplang_core.types import TensorType


class _Bounded(DeclaredRange):
    def declared(self, op: Operation) -> tuple[float, float]:
        return op.attrs["low"], op.attrs["high"]


@simple_op(
    "simp.bounded", effects=Effects.NONE, interfaces=[_Bounded()], execution_model="single_rank"
)
def bounded(x: TensorType, *, low: int | float, high: int | float) -> TensorType:
    """Give a tensor as it is, if all of its elements are in a range.

    A party where one is not fails, and says nothing of the element.

    Args:
        x: a tensor of real numbers.
        low: the smallest number allowed.
        high: the largest one.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.put("P0", [1.0, 2.0], range=(0, 10))  # emits it where the value is
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([1., 2.])
    """
    if x.dtype.value.startswith("c"):
        raise TypeError(f"complex numbers have no order: {x}")
    if not low <= high:
        raise ValueError(f"low is not above high, got ({low}, {high})")
    return x


@kernel("simp.bounded")
def _bounded(ctx: KernelContext, x: Any, *, low: float, high: float) -> Any:
    array = np.asarray(x)
    if array.dtype.kind == "V":  # bfloat16 has no comparisons with float64 everywhere
        array = array.astype(np.float32)
    if not bool(((array >= low) & (array <= high)).all()):  # NaN is in no range
        where = f" at {ctx.op.location}" if ctx.op.location else ""
        raise RunError(
            f"party {ctx.interpreter.rank} has a value outside of the range [{low:g}, {high:g}] "
            f"that is declared{where}; which one is not told. Check the data of that party, or "
            "declare a wider range"
        )
    return x

"""Op ``simp.bounded``: a declared range, checked by the holder of the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core.errors import RunError
from mplang_core.ir import AnyType, Attr, Level, Operation
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import DeclaredRange
from mplang_core.simp.ops.common import declare
from mplang_core.types import TensorType


class _Bounded(DeclaredRange):
    def declared(self, op: Operation) -> tuple[float, float]:
        return op.attrs["low"], op.attrs["high"]


@declare(
    "simp.bounded",
    _Bounded(),
    {
        "low": Attr((int, float), doc="the smallest number allowed"),
        "high": Attr((int, float), doc="the largest one"),
    },
    level=Level.LOCAL,
    reads=(),
)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Gives a tensor as it is, if all of its elements are in a range; else the party fails, and
    says nothing of the element. ``mp.put(…, range=…)`` emits it.
    """
    (kind,) = (value.type for value in op.inputs)
    if not isinstance(kind, TensorType):
        raise TypeError(f"expected a tensor, got {kind}")
    if kind.dtype.value.startswith("c"):
        raise TypeError(f"complex numbers have no order: {kind}")
    low, high = op.attrs["low"], op.attrs["high"]
    if not low <= high:
        raise ValueError(f"low is not above high, got ({low}, {high})")
    return [kind]


@kernel("simp.bounded")
def _bounded(ctx: KernelContext, x: Any, *, low: float, high: float) -> Any:
    array = np.asarray(x)
    if array.dtype.kind == "V":  # not all versions of ml_dtypes compare bfloat16 with float64
        array = array.astype(np.float32)
    if not bool(((array >= low) & (array <= high)).all()):  # NaN is in no range
        where = f" at {ctx.op.location}" if ctx.op.location else ""
        raise RunError(
            f"party {ctx.interpreter.rank} has a value outside of the range [{low:g}, {high:g}] "
            f"that is declared{where}; which one is not told. Check the data of that party, or "
            "declare a wider range",
            code="R006",
        )
    return x

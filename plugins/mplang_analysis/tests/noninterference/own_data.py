"""Ops that read a number of their party's own; imported by workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mplang_core import TensorType, kernel, simple_op
from mplang_core.ext import KernelContext


@simple_op("lab.load")
def load() -> TensorType:
    """Return the number that the party keeps."""
    return TensorType("i64")


@simple_op("lab.read")
def read(x: TensorType) -> TensorType:
    """Return the sum of the operand and the number that the party keeps."""
    return x


@kernel("lab.load")
def _load(ctx: KernelContext) -> Any:
    return np.asarray(own(ctx))


@kernel("lab.read")
def _read(ctx: KernelContext, x: Any) -> Any:
    return np.asarray(x + own(ctx))


def own(ctx: KernelContext) -> int:
    """Return the number that the party of a context keeps, by default its rank."""
    return int(ctx.interpreter.resources.get(own, ctx.interpreter.rank))

"""Ops that read more than they say, imported by the workers under test."""

from __future__ import annotations

from typing import Any

import numpy as np

from mplang_core import TensorType, simple_op
from mplang_core.runtime import KernelContext, kernel

__all__ = ["read_other"]


@simple_op("greedy.read_other", reads=())
def read_other(x: TensorType) -> TensorType:
    """Read the data set ``secret`` of the party, of which the program says nothing."""
    return x


@kernel("greedy.read_other")
def read_other_kernel(ctx: KernelContext, x: Any) -> Any:
    kind = TensorType("f64", (3,))
    return np.asarray(ctx.interpreter.data.read("secret", kind, (), perhaps=False)).sum() + x

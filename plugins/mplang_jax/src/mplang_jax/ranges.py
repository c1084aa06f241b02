"""Range analysis of ``jax.run``. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval, OpRanges
from mplang_stablehlo import read
from mplang_stablehlo.ext import intervals, prepare

from mplang_core.ext import Operation
from mplang_jax.admission import XLA


def ranges_of(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Interpret the code on intervals, in floating point.

    Args:
        op: a ``jax.run``.
        ins: the interval of each operand.

    Returns:
        The intervals of the results; unknown if XLA refuses the code.
    """
    try:
        module = _module(op.attrs["code"])
    except ValueError:
        return OpRanges([UNKNOWN] * len(op.outputs))
    return OpRanges(intervals(module, ins).results)


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def _module(code: bytes) -> ir.Module:
    return prepare(XLA.admit(read(code)))

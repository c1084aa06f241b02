"""The intervals of ``jax.run``. Imports JAX."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_stablehlo import read
from mplang_stablehlo.intervals import intervals

from mplang_core.interval import Interval
from mplang_core.ir import Operation, OpRanges

__all__ = ["ranges_of"]


def ranges_of(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Return the intervals of what XLA gives, in floating point."""
    return OpRanges(intervals(read(op.attrs["code"]), ins).results)

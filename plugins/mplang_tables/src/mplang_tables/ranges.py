"""Ranges of the numbers of tables: one interval for all columns of numbers of a table."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import Interval, OpRanges, RangeRule

from mplang_core.ext import Operation


def _alike(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges(list(operands))


def _first(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([operands[0]])


def _padded(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([operands[0] | Interval(0, 0), Interval(0, 1)])


ALIKE = RangeRule(_alike)
FIRST = RangeRule(_first)
PADDED = RangeRule(_padded)

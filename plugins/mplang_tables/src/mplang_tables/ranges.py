"""Ranges of the numbers of tables: one interval for all columns of numbers of a table."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import Interval, OpRanges, RangeRule

from mplang_core import TableType
from mplang_core.ext import Operation
from mplang_tables.columns import number_columns


def _alike(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges(list(operands))


def _padded(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([operands[0] | Interval(0, 0), Interval(0, 1)])


def _encoded(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return _beside(op, operands[0], Interval(-int(op.attrs["others"]), len(op.attrs["values"]) - 1))


def _one_hot(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return _beside(op, operands[0], Interval(0, 1))


def _beside(op: Operation, before: Interval, made: Interval) -> OpRanges:
    """Return the interval of a table in which one column is replaced."""
    kind = op.inputs[0].type
    assert isinstance(kind, TableType)
    others = set(number_columns(kind)) - {op.attrs["column"]}
    return OpRanges([before | made if others else made])


ALIKE = RangeRule(_alike)
PADDED = RangeRule(_padded)
ENCODED = RangeRule(_encoded)
ONE_HOT = RangeRule(_one_hot)

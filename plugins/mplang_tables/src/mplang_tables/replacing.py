"""Rules of ops that replace columns of a table: its rows and its other columns stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from mplang_analysis import Interval, Lineage, LineageRule, Selection, selected

from mplang_core import TableType
from mplang_core.ext import Operation
from mplang_tables.columns import number_columns


def replaced_columns(op: Operation) -> set[str]:
    """Return the columns of the operand that an op replaces, by its attributes."""
    if "column" in op.attrs:
        return {op.attrs["column"]}
    return set(op.attrs["columns"])


def _cast_columns(op: Operation) -> set[str]:
    """Return the columns whose types an op changes."""
    before, after = (set(cast(TableType, each[0].type).columns) for each in (op.inputs, op.outputs))
    return {name for name, _ in after - before}


def _lineage(replaced: Callable[[Operation], set[str]]) -> LineageRule:
    """Return the lineage of a table in which some columns are computed."""

    def rule(op: Operation, rank: int, operands: Sequence[Lineage | None]) -> Lineage | None:
        before, after = (cast(TableType, each[0].type) for each in (op.inputs, op.outputs))
        same = {name for name, _ in before.columns} - replaced(op)
        columns = [(name, name if name in same else None) for name, _ in after.columns]
        return selected(Selection(0, columns), operands)

    return LineageRule(rule)


KEEPS_OTHERS = _lineage(replaced_columns)
"""Lineage of a table in which the columns that the attributes name are computed."""
CASTS = _lineage(_cast_columns)
"""Lineage of a table in which the columns of other types are computed."""


def beside(op: Operation, before: Interval, made: Interval | None) -> Interval:
    """Return the interval of a table in which columns are replaced.

    Args:
        op: the op.
        before: the interval of its operand.
        made: the interval of the new columns; ``None`` if they hold no numbers.
    """
    kind = cast(TableType, op.inputs[0].type)
    if made is None:
        return before
    others = set(number_columns(kind)) - replaced_columns(op)
    return before | made if others else made

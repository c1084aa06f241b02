"""Ops between decimals, dates, times, bools and integers, exactly and in a named unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from mplang_analysis import Interval, OpRanges, RangeRule

from mplang_core import TableType, simple_op
from mplang_core.ext import Operation
from mplang_tables.columns import check_table, is_integer, is_number, replaced, type_of_column
from mplang_tables.replacing import KEEPS_OTHERS, beside
from mplang_tables.units import step_of_unit, steps_per_unit

_TABLE = {"kind": "Table"}


def _scaled(interval: Interval, by: Fraction) -> Interval:
    """Return an interval times a factor, its ends rounded outwards to whole numbers."""
    low, high = interval.low, interval.high
    return Interval(
        math.floor(Fraction(low) * by) if math.isfinite(low) else low,
        math.ceil(Fraction(high) * by) if math.isfinite(high) else high,
    )


def _to(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    kind = type_of_column(cast(TableType, op.inputs[0].type), op.attrs["column"])
    made = Interval()
    if kind == "bool":
        made = Interval(0, 1)
    elif is_number(kind):
        made = _scaled(operands[0], 1 / step_of_unit(op.attrs["unit"]).size)
    return OpRanges([beside(op, operands[0], made)])


@simple_op(
    "table.to_integers",
    interfaces=[RangeRule(_to), KEEPS_OTHERS],
    reads=(),
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def to_integers(x: TableType, *, column: str, unit: str = "1") -> TableType:
    """Convert a column of decimals, dates, times or bools to integers in a unit, exactly.

    Integers are exact on shares, too: money is counted in cents.

    Args:
        x: a table.
        column: a column of decimals, integers, bools, dates or times.
        unit: of numbers ``"1"``, ``"cents"``, or another part such as ``"0.001"``; of dates and
            times ``"days"``, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``, since 1970-01-01, or
            midnight.

    Returns:
        The table, with ``int64`` in that column. Nulls stay null.

    Raises:
        TraceError: there is no such column, or its type has no such unit.
        KernelError: a value is not a whole number of the unit, or beyond 64 bits; names the
            column, no value. Raised at the party that has the table.

    Example:
        >>> import decimal
        >>> import mplang_core as mp
        >>> from mplang_tables import table, to_integers
        >>> def program():
        ...     x = mp.device("P0")(table({"pay": [decimal.Decimal("12.50"), None]}))()
        ...     return mp.device("P0")(to_integers)(x, column="pay", unit="cents")
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'pay': [1250, None]}
    """
    check_table(x)
    steps_per_unit(column, type_of_column(x, column), unit)
    return replaced(x, column, (column, "int64"))


def _from(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    made = None
    if op.attrs["type"] == "bool":
        made = Interval(0, 1)
    elif is_number(op.attrs["type"]):
        made = _scaled(operands[0], step_of_unit(op.attrs["unit"]).size)
    return OpRanges([beside(op, operands[0], made)])


@simple_op(
    "table.from_integers",
    interfaces=[RangeRule(_from), KEEPS_OTHERS],
    reads=(),
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def from_integers(x: TableType, *, column: str, type: str, unit: str = "1") -> TableType:
    """Convert a column of integers in a unit to decimals, dates, times or bools, exactly.

    Args:
        x: a table.
        column: a column of integers.
        type: what it becomes, such as ``"decimal128(12, 2)"``, ``"date32[day]"`` or ``"bool"``.
        unit: the unit, as in :func:`to_integers`.

    Returns:
        The table, with that type in that column. Nulls stay null.

    Raises:
        TraceError: there is no such column, or the type has no such unit.
        KernelError: a number is none of the type; names the column, no value. Raised at the party
            that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import from_integers, table
        >>> def program():
        ...     x = mp.device("P0")(table({"pay": [1250, -5]}))()
        ...     return mp.device("P0")(from_integers)(
        ...         x, column="pay", unit="cents", type="decimal128(12, 2)")
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'pay': [Decimal('12.50'), Decimal('-0.05')]}
    """
    check_table(x)
    kind = type_of_column(x, column)
    if not is_integer(kind):
        raise TypeError(f"column {column!r} is of the type {kind}; units are counted by integers")
    made = replaced(x, column, (column, type))
    steps_per_unit(column, type, unit)
    return made

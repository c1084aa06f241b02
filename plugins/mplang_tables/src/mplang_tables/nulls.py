"""Op that puts a public value in place of nulls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from mplang_analysis import Interval, OpRanges, RangeRule, hull

from mplang_core import TableType, simple_op
from mplang_core.ext import Operation
from mplang_tables.categories import fits
from mplang_tables.columns import check_table, is_integer, is_number, type_of_column
from mplang_tables.replacing import KEEPS_OTHERS

_TABLE = {"kind": "Table"}


def _filled(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    types = dict(cast(TableType, op.inputs[0].type).columns)
    kinds = [types[name] for name in op.attrs["columns"]]
    return OpRanges(
        [operands[0] | hull(_number(op.attrs["value"], kind) for kind in kinds)]
        if all(map(is_number, kinds))
        else operands
    )


@simple_op(
    "table.fill_nulls",
    interfaces=[RangeRule(_filled), KEEPS_OTHERS],
    reads=(),
    total=True,
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def fill_nulls(
    x: TableType, *, columns: tuple[str, ...], value: bool | int | float | str
) -> TableType:
    """Put a value in place of the nulls of some columns.

    The published range of a column, with the value, is that of the result; of what SQL fills it
    is not known.

    Args:
        x: a table.
        columns: columns of bools, integers, floats or strings.
        value: the value, which is public.

    Returns:
        The table, without nulls in these columns.

    Raises:
        TraceError: there is no such column, or the value is none of its type.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import fill_nulls, table
        >>> def program():
        ...     x = mp.device("P0")(table({"age": [20, None], "kids": [None, 1]}))()
        ...     return mp.device("P0")(fill_nulls)(x, columns=("kids",), value=0)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'age': [20, None], 'kids': [0, 1]}
    """
    check_table(x)
    if not columns or len(set(columns)) != len(columns):
        raise TypeError("expected at least one column, and each of them once")
    for column in columns:
        kind = type_of_column(x, column)
        if not _is_of(value, kind):
            raise TypeError(f"column {column!r} is of the type {kind}, got {str(value)[:40]!r}")
    return x


def _is_of(value: bool | int | float | str, kind: str) -> bool:
    """Return whether a value is one of a column's type; of floats, a finite one."""
    if isinstance(value, str) or kind == "string":
        return isinstance(value, str) and kind == "string" and fits(value, kind)
    if isinstance(value, bool) or kind == "bool":
        return isinstance(value, bool) and kind == "bool"
    if kind in ("float", "double"):
        return math.isfinite(_number(value, kind))
    return is_integer(kind) and type(value) is int and fits(value, kind)


def _number(value: float, kind: str) -> float:
    """Return a number as a column of a type has it."""
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if kind == "float" else value

"""Kernels of the dialect ``ibis``. Imports Arrow and DuckDB when they run.

Error messages are public: they may contain columns, never values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mplang_core import TableType
from mplang_core.ext import AdmissionError, KernelContext, KernelError
from mplang_ibis.ops import read_sql

Array = np.ndarray[Any, Any]


def run(
    ctx: KernelContext, *tables: Any, code: bytes, names: Sequence[str], gives: TableType, ibis: str
) -> Any:
    """Run one SELECT on tables.

    Args:
        ctx: of the op.
        *tables: Arrow tables.
        code: the compressed SQL.
        names: the names of the tables in the SQL.
        gives: the type of the result.
        ibis: the version of Ibis that made the code; unused.

    Returns:
        An Arrow table of the declared type.

    Raises:
        AdmissionError: the SQL is not allowed.
        KernelError: a table is not of its type, the query took too long, or the result does not fit
            in its type.
    """
    from mplang_ibis import query

    for value, name, table in zip(ctx.op.inputs, names, tables, strict=True):
        _check(cast(TableType, value.type), table, name)
    try:
        sql = read_sql(code)
    except ValueError as error:
        raise AdmissionError(f"ibis.run: {error}") from error
    return query.run(sql, dict(zip(names, tables, strict=True)), gives)


def literal(ctx: KernelContext, *, rows: int, data: Sequence[bytes], type: TableType) -> Any:
    """Read the table that the program contains.

    Args:
        ctx: of the op.
        rows: the number of rows.
        data: the buffers of the columns.
        type: the type of the table.

    Returns:
        An Arrow table.

    Raises:
        AdmissionError: the data is not such a table.
    """
    from mplang_tables import arrow

    try:
        return arrow.read(type, rows, data)
    except (TypeError, ValueError) as error:
        raise AdmissionError(f"ibis.literal: the data is no {type}: {error}") from error


def to_tensor(ctx: KernelContext, x: Any, *, rows: int) -> Array:
    """Stack the columns of a table.

    Args:
        ctx: of the op.
        x: an Arrow table without nulls.
        rows: the declared number of rows.

    Returns:
        An array of shape ``[rows, columns]``.

    Raises:
        KernelError: the table has another number of rows, or a column has nulls.
    """
    _check(cast(TableType, ctx.op.inputs[0].type), x, "the operand")
    if x.num_rows != rows:
        raise KernelError(f"ibis.to_tensor: the table does not have the {rows} rows declared")
    columns = []
    for name, column in zip(x.column_names, x.columns, strict=True):
        if column.null_count:
            raise KernelError(
                f"ibis.to_tensor: column {name!r} has nulls, a tensor none; fill or drop them"
            )
        columns.append(column.to_numpy())
    return np.column_stack(columns)


def from_tensor(ctx: KernelContext, x: Array, *, columns: Sequence[str]) -> Any:
    """Split an array into columns.

    Args:
        ctx: of the op.
        x: an array of shape ``[rows, columns]``.
        columns: the names of the columns.

    Returns:
        An Arrow table.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.table([pa.array(np.ascontiguousarray(c)) for c in np.asarray(x).T], list(columns))


def _check(kind: TableType, table: Any, name: str) -> None:
    from mplang_tables import arrow

    if getattr(table, "schema", None) != arrow.schema(kind):
        raise KernelError(f"{name} is not the {kind} that the program says")

"""Kernels of the dialect ``table``. Imports Arrow when they run.

Error messages are public: they may contain columns, never values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mplang_core import TableType, TensorType
from mplang_core.ext import AdmissionError, KernelContext, KernelError
from mplang_tables.padded import Padded
from mplang_tables.scan import Scan, loaded

Array = np.ndarray[Any, Any]


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
        raise AdmissionError(f"table.literal: the data is no {type}: {error}") from error


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
    values, count = _stacked(ctx, x, rows)
    if count != rows:
        raise _other_rows(ctx, rows)
    return values


def to_padded(ctx: KernelContext, x: Any, *, rows: int) -> Padded:
    """Stack the columns of a table, and fill the rest with zeros.

    Args:
        ctx: of the op.
        x: an Arrow table without nulls.
        rows: a bound of its number of rows.

    Returns:
        Arrays of the shapes ``[rows, columns]`` and ``[rows]``.

    Raises:
        KernelError: the table has more rows, or a column has nulls.
    """
    values, count = _stacked(ctx, x, rows)
    values[count:] = 0
    return Padded(values, np.arange(rows) < count)


def _stacked(ctx: KernelContext, x: Any, rows: int) -> tuple[Array, int]:
    """Return an array of so many rows, and how many of them are those of a table.

    It is filled in parts, so that there is no second copy of a table that is read for it.

    Raises:
        KernelError: the table has more, or a column has nulls.
    """
    from mplang_tables import arrow

    arrow.check_is(cast(TableType, ctx.op.inputs[0].type), x, "the operand")
    if x.num_rows > rows:  # before memory is taken
        raise _other_rows(ctx, rows)
    kind = cast(TensorType, ctx.op.outputs[0].type)
    values = np.empty((rows, len(x.column_names)), kind.dtype.numpy)
    count = 0
    for part in x.tables() if isinstance(x, Scan) else [x]:
        end = count + part.num_rows
        if end > rows:
            raise _other_rows(ctx, rows)
        for i, (name, column) in enumerate(zip(part.column_names, part.columns, strict=True)):
            if column.null_count:
                raise KernelError(
                    f"{ctx.op.opcode}: column {name!r} has nulls, a tensor none; fill or drop them"
                )
            values[count:end, i] = column.to_numpy()
        count = end
    return values, count


def _other_rows(ctx: KernelContext, rows: int) -> KernelError:
    exact = ctx.op.opcode == "table.to_tensor"
    has = f"does not have the {rows}" if exact else f"has more than the {rows}"
    return KernelError(f"{ctx.op.opcode}: the table {has} rows declared")


def encode(
    ctx: KernelContext, x: Any, *, column: str, values: Sequence[str | int], others: bool
) -> Any:
    """Replace a column by the positions of its values in a list.

    Args:
        ctx: of the op.
        x: an Arrow table.
        column: the column.
        values: the list.
        others: whether there may be others, and nulls.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a value is not in the list.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    x, found = _positions(ctx, x, column, values, others)
    return x.set_column(x.column_names.index(column), column, found.cast(pa.int64()))


def one_hot(
    ctx: KernelContext, x: Any, *, column: str, values: Sequence[str | int], others: bool, type: str
) -> Any:
    """Replace a column by one for each value of a list.

    Args:
        ctx: of the op.
        x: an Arrow table.
        column: the column.
        values: the list.
        others: whether there may be others, and nulls.
        type: the type of the columns.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a value is not in the list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    x, found = _positions(ctx, x, column, values, others)
    i = x.column_names.index(column)
    made = x.remove_column(i)
    for number, value in enumerate(values):
        here = pc.equal(found, number).cast(pa.type_for_alias(type))
        made = made.add_column(i + number, f"{column}_{value}", here)
    return made


def _positions(
    ctx: KernelContext, x: Any, column: str, values: Sequence[str | int], others: bool
) -> tuple[Any, Any]:
    """Return a table, and the positions of a column's values in a list; -1 for others and nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from mplang_tables import arrow

    arrow.check_is(cast(TableType, ctx.op.inputs[0].type), x, "the operand")
    table = loaded(x)
    cells = table.column(column)
    found = pc.index_in(cells, pa.array(list(values), cells.type))
    if found.null_count and not others:
        raise KernelError(
            f"{ctx.op.opcode}: column {column!r} has nulls, or values that are not in the list"
        )
    return table, found.fill_null(-1)


def from_tensor(ctx: KernelContext, x: Array, *, columns: Sequence[str]) -> Any:
    """Split an array into columns.

    Args:
        ctx: of the op.
        x: an array of shape ``[rows, columns]``.
        columns: the names of the columns.

    Returns:
        An Arrow table.
    """
    import pyarrow as pa

    return pa.table([pa.array(np.ascontiguousarray(c)) for c in np.asarray(x).T], list(columns))

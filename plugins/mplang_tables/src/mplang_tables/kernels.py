"""Kernels between tables, tensors and literals. Import Arrow when they run.

Error messages are public: they may contain columns, never values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mplang_core import TableType, TensorType
from mplang_core.ext import AdmissionError, KernelContext, KernelError
from mplang_tables.arrow_types import Table
from mplang_tables.padded import Padded
from mplang_tables.scan import Scan

Array = np.ndarray[Any, Any]


def literal(ctx: KernelContext, *, rows: int, data: Sequence[bytes], type: TableType) -> Table:
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
        raise AdmissionError(
            f"table.literal: the data is not of type {type}: {error}", code="A005"
        ) from error


def to_tensor(ctx: KernelContext, x: Table, *, rows: int) -> Array:
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


def to_padded(ctx: KernelContext, x: Table, *, rows: int) -> Padded:
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


def to_masked(ctx: KernelContext, x: Table, *, rows: int) -> Padded:
    """Stack the columns of a table, with zeros for nulls and for the rest.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        rows: a bound of its number of rows.

    Returns:
        Two arrays of shape ``[rows, columns]``.

    Raises:
        KernelError: the table has more rows.
    """
    valid = np.zeros((rows, len(x.column_names)), bool)
    values, count = _stacked(ctx, x, rows, valid)
    values[count:] = 0
    return Padded(values, valid)


def _stacked(
    ctx: KernelContext, x: Table, rows: int, valid: Array | None = None
) -> tuple[Array, int]:
    """Return an array of so many rows, and how many of them are those of a table.

    It is filled in parts, so that there is no second copy of a table that is read for it.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        rows: the number of rows of the array.
        valid: is set where a cell is not null; without it there may be none.

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
            if valid is not None:
                valid[count:end, i] = column.is_valid().to_numpy()
                column = column.fill_null(False if str(column.type) == "bool" else 0)
            elif column.null_count:
                raise KernelError(
                    f"{ctx.op.opcode}: column {name!r} has nulls, which tensors cannot hold; fill "
                    "or drop them "
                    "(mplang_tables.fill_nulls), or use to_masked, which keeps them",
                    code="R008",
                )
            values[count:end, i] = column.to_numpy()
        count = end
    return values, count


def _other_rows(ctx: KernelContext, rows: int) -> KernelError:
    exact = ctx.op.opcode == "table.to_tensor"
    has = f"does not have the {rows}" if exact else f"has more than the {rows}"
    remedy = (
        "to_padded takes a table of up to rows=" if exact else "filter it, or say more by rows="
    )
    return KernelError(f"{ctx.op.opcode}: the table {has} rows declared; {remedy}", code="R009")


def from_tensor(ctx: KernelContext, x: Array, *, columns: Sequence[str]) -> Table:
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


def from_padded(
    ctx: KernelContext, values: Array, valid: Array, *, columns: Sequence[str]
) -> Table:
    """Split the rows of an array that are there into columns.

    Args:
        ctx: of the op.
        values: an array of shape ``[bound, columns]``.
        valid: which rows, or which cells, are there.
        columns: the names of the columns.

    Returns:
        An Arrow table; cells that are not there are null.
    """
    import pyarrow as pa

    values, valid = np.asarray(values), np.asarray(valid)
    rows = valid if valid.ndim == 1 else valid.any(axis=1)
    absent = None if valid.ndim == 1 else ~valid[rows]
    made = []
    for i, column in enumerate(values[rows].T):
        mask = None if absent is None else np.ascontiguousarray(absent[:, i])
        made.append(pa.array(np.ascontiguousarray(column), mask=mask, from_pandas=False))
    return pa.table(made, list(columns))

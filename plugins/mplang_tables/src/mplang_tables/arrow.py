"""Conversion of tables to and from Arrow, its schemas and its buffers. Imports Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from mplang_core import TableType
from mplang_core.ext import KernelError
from mplang_tables.columns import check_table

_PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def schema(kind: TableType) -> Any:
    """Return the Arrow schema of a table type: all columns nullable, without metadata.

    Raises:
        TypeError: the type of a column is not supported.
        ValueError: there are no or too many columns, or their names are not unique.

    Example:
        >>> schema(TableType((("price", "decimal128(10, 2)"),)))
        price: decimal128(10, 2)
    """
    check_table(kind)
    return pa.schema([(name, _parse(type)) for name, type in kind.columns])


def _parse(name: str) -> Any:
    if name.startswith("decimal128("):
        return pa.decimal128(*map(int, name[len("decimal128(") : -1].split(",")))
    if name == "timestamp[us, tz=UTC]":
        return pa.timestamp("us", "UTC")
    return pa.type_for_alias(name)


def type_of(arrow: Any) -> TableType:
    """Return the type of an Arrow table or schema.

    Example:
        >>> print(type_of(pa.table({"a": [1.5]})))
        table<["a", "double"]>
    """
    found = arrow.schema if isinstance(arrow, pa.Table) else arrow
    return TableType(tuple((field.name, str(field.type)) for field in found))


def check_is(kind: TableType, table: Any, name: str) -> None:
    """Check that an operand is what the program says.

    Raises:
        KernelError: it is another table, or none.
    """
    if getattr(table, "schema", None) != schema(kind):
        raise KernelError(f"{name} is not the {kind} that the program says", code="R009")


def normalize(data: Any) -> Any:
    """Convert data to an Arrow table with one canonical layout per type.

    Args:
        data: an Arrow table, a frame of pandas or polars, another object that exports Arrow data
            (``__arrow_c_stream__``), or columns by name. Dictionaries and categories are
            expanded; strings and bytes in any layout become plain ones. What pandas takes for
            missing (``NaN``, ``None``) is null. An index of pandas is a column if it has a name;
            one of integers without a name is left out, and another one refused.

    Returns:
        A ``pyarrow.Table`` that no later change of the data reaches.

    Raises:
        TypeError: it is not a table, or the type of a column is not supported.
        ValueError: there are no or too many columns, or their names are not unique.

    Example:
        >>> normalize({"a": pa.array(["x", "x"]).dictionary_encode()}).schema
        a: string
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": [1.5, None]}, index=pd.Index([7, 9], name="id"))
        >>> normalize(frame).to_pylist()
        [{'a': 1.5, 'id': 7}, {'a': None, 'id': 9}]
    """
    try:
        made = plain(_table(data))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:300]
        mixed = "with type object" in reason
        advice = "; make its elements of one type, as frame.astype({'name': str})" if mixed else ""
        raise TypeError(f"this is not a table: {reason}{advice}") from error
    check_table(type_of(made))
    return pa.Table.from_arrays(list(map(_copied, made.columns)), schema=made.schema)


def _copied(column: Any) -> Any:
    """Return a column in memory of its own: Arrow cannot tell whether others may change it."""
    empty = pa.array([], column.type)
    return pa.concat_arrays([*column.chunks, empty, empty])


def _table(data: Any) -> Any:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        for name, column in data.items():
            if isinstance(column, str | bytes):
                raise TypeError(f"column {name!r} is one text, expected a list of values")
        made = pa.table(dict(data))
        for name, column in data.items():
            _check_times(name, column, made.schema.field(name).type)
        return made
    if hasattr(data, "index") and hasattr(data, "columns"):  # a frame of pandas
        unnamed = [i for i, name in enumerate(data.index.names) if name is None]
        kinds = [data.index.get_level_values(i).inferred_type for i in unnamed]
        _check_frame(data.columns.nlevels, kinds)
        if 0 < len(unnamed) < data.index.nlevels:
            data = data.reset_index(level=unnamed, drop=True)
        if set(data.index.names) & set(data.columns):
            raise ValueError("an index is called as a column is; rename one of them")
        is_named = any(name is not None for name in data.index.names)
        return pa.Table.from_pandas(data, preserve_index=is_named)
    return pa.table(data)  # whatever exports Arrow data


def _check_frame(levels: int, kinds: Sequence[str]) -> None:
    """Check that a frame of pandas loses nothing as a table: an index of numbers counts rows.

    Raises:
        ValueError: columns have several levels, or an index that has no name holds something else.
    """
    if levels > 1:
        raise ValueError(
            f"its columns have {levels} levels; give each one name, as "
            "frame.columns = ['_'.join(map(str, each)) for each in frame.columns]"
        )
    for kind in kinds:
        if kind not in ("integer", "empty"):
            raise ValueError(
                f"its index holds data ({kind}) and has no name; write frame.rename_axis('name') "
                "to have it as a column, or frame.reset_index(drop=True) to drop it"
            )


def _check_times(name: str, column: Any, kind: Any) -> None:
    """Check that Arrow cut off no hours and no zones, since it goes by the first times of a list.

    Raises:
        ValueError: a list has dates and times, or times with and without a zone.
    """
    if not isinstance(column, list | tuple) or not pa.types.is_temporal(kind):
        return
    times = [each for each in column if isinstance(each, datetime)]
    zones = {each.tzinfo is not None for each in times}
    if len(zones) > 1:
        raise ValueError(f"column {name!r} has times with a zone, and others without")
    if times and pa.types.is_date(kind):
        raise ValueError(f"column {name!r} has dates, and times among them; make all of them times")


def plain(found: Any) -> Any:
    """Return an Arrow table with categories as their values, and strings and bytes as plain ones.

    Columns that are so already are not copied.

    Example:
        >>> plain(pa.table({"a": pa.array(["x"], pa.large_string())})).schema
        a: string
    """
    columns = [_expanded(column) for column in found.columns]
    kinds = [(n, plain_type(c.type)) for n, c in zip(found.column_names, columns, strict=True)]
    return pa.table(columns, names=found.column_names).cast(pa.schema(kinds))


def _expanded(column: Any) -> Any:
    """Return a column of categories as one of their values."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind = plain_type(column.type)
    chunks = [each.dictionary.cast(kind).take(each.indices) for each in column.chunks]
    return pa.chunked_array(chunks, kind)


def plain_type(type: Any) -> Any:
    """Return the type that a column has in :func:`plain`."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    return _PLAIN.get(type, type)


_WIDER = "; a sum of what is cast to DECIMAL(38, 0) has more digits"


def cast(found: Any, kind: TableType) -> Any:
    """Cast a result to its declared type, without rounding, truncation, or data beneath nulls.

    Args:
        found: a ``pyarrow.Table``.
        kind: the declared type.

    Returns:
        A table of the declared type.

    Raises:
        ValueError: it has other columns, or a value does not fit; names the column.

    Example:
        >>> cast(pa.table({"a": [1, None]}), TableType((("a", "int8"),))).column(0).type
        DataType(int8)
    """
    wanted = schema(kind)
    if found.column_names != wanted.names:
        raise ValueError(f"the columns are {found.column_names}, declared are {wanted.names}")
    columns = []
    for field, column in zip(wanted, found.columns, strict=True):
        try:
            chunks = map(without_hidden, column.cast(field.type).chunks)
            columns.append(pa.chunked_array(chunks, field.type))
        except pa.ArrowException as error:
            raise ValueError(
                f"column {field.name!r} is {column.type}, and does not fit in {field.type}"
                f"{_WIDER if pa.types.is_decimal(column.type) else ''}"
            ) from error
    return pa.Table.from_arrays(columns, schema=wanted)


def without_hidden(column: pa.Array) -> pa.Array:
    r"""Return a column with zeros, and no texts, in the memory of its null cells.

    DuckDB leaves there what its memory held, such as values of rows and columns that a query does
    not give.

    Args:
        column: a ``pyarrow.Array``.

    Example:
        >>> memory = [pa.py_buffer(b"\1"), pa.py_buffer(b"\1\7")]
        >>> hidden = pa.Array.from_buffers(pa.int8(), 2, memory)
        >>> without_hidden(hidden).buffers()[1].to_pybytes()[:2]
        b'\x01\x00'
    """
    if not column.null_count:
        return column
    kind = column.type
    data = [pa.py_buffer(bytes(16))] * (kind.num_buffers - 1)
    (empty,) = pa.Array.from_buffers(kind, 1, [None, *data])
    validity = pa.concat_arrays([column, pa.array([], kind)]).buffers()[0]  # without an offset
    filled = column.fill_null(empty).buffers()
    return pa.Array.from_buffers(kind, len(column), [validity, *filled[1:]])


def write(value: Any) -> tuple[int, list[Any]]:
    """Return a table as Arrow's memory layout; a copy, without data outside of a slice or of nulls.

    Returns:
        The number of rows, and per column its validity bitmap (empty without nulls), for strings
        and bytes the offsets, and the data. Without rows, all of them are empty.

    Raises:
        TypeError: it is not a table, or the type of a column is not supported.
        ValueError: there are no or too many columns, their names are not unique, or a column is too
            large.

    Example:
        >>> rows, buffers = write(pa.table({"a": [1, 2]}))
        >>> rows, [len(memoryview(buffer)) for buffer in buffers]
        (2, [0, 16])
    """
    if not isinstance(value, pa.Table):
        raise TypeError(f"expected a pyarrow.Table, got a {type(value).__name__}")
    schema(type_of(value))
    rows, buffers = value.num_rows, []
    for column in value.columns:
        empty = pa.array([], column.type)
        try:
            found = without_hidden(pa.concat_arrays([*column.chunks, empty, empty])).buffers()
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error
        for buffer, size in zip(found, _sizes(column.type, rows), strict=True):
            buffers.append(pa.py_buffer(b"") if buffer is None or not rows else buffer[:size])
    return rows, buffers


def read(kind: TableType, rows: int, buffers: Sequence[bytes | memoryview]) -> Any:
    """Construct a table from the result of :func:`write`.

    It shares the buffers' memory if that is read-only. Arrow's own formats are not used: their
    readers crash on damaged input.

    Args:
        kind: the type of the table.
        rows: the number of rows.
        buffers: as :func:`write` returns them.

    Returns:
        A ``pyarrow.Table``.

    Raises:
        TypeError: the type of a column is not supported.
        ValueError: rows and buffers do not form such a table.

    Example:
        >>> kind = TableType((("a", "string"),))
        >>> read(kind, *write(pa.table({"a": ["x", None]}))).to_pylist()
        [{'a': 'x'}, {'a': None}]
    """
    wanted = schema(kind)
    if type(rows) is not int or rows < 0:
        raise ValueError("a table has a number of rows")
    if len(buffers) != sum(type.num_buffers for type in wanted.types):
        raise ValueError("it has not the buffers of its columns")
    if not rows:
        if any(len(data) for data in buffers):
            raise ValueError("it has no rows, but data")
        return wanted.empty_table()
    left = iter(buffers)
    columns = [_column(type, rows, [next(left) for _ in _sizes(type, 0)]) for type in wanted.types]
    return pa.Table.from_arrays(columns, schema=wanted)


def _column(type: Any, rows: int, buffers: list[bytes | memoryview]) -> Any:
    found = [_frozen(data) for data in buffers]
    if not found[0].size:
        found[0] = None
    for buffer, size in zip(found, _sizes(type, rows), strict=True):
        if buffer is not None and size is not None and buffer.size != size:
            raise ValueError(f"a buffer of {rows} rows of {type} has {buffer.size} bytes")
    column = pa.Array.from_buffers(type, rows, found)
    column.validate(full=True)
    return column


def _sizes(type: Any, rows: int) -> list[int | None]:
    """Return the sizes of a column's buffers in bytes; ``None`` for a size that depends on data."""
    validity = (rows + 7) // 8
    if type in (pa.string(), pa.binary()):
        return [validity, 4 * (rows + 1), None]
    return [validity, (rows * type.bit_width + 7) // 8]


def _frozen(data: bytes | memoryview) -> Any:
    """Return an immutable buffer, aligned for any element type."""
    with memoryview(data) as view:
        kept = data if view.readonly and view.c_contiguous else bytes(view)
    buffer = pa.py_buffer(kept)
    return buffer if buffer.address % 16 == 0 else pa.py_buffer(bytes(kept))

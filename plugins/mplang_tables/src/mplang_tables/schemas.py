"""Schemas of Arrow for table types, and back, for compilers of tables. Imports Arrow when used."""

from __future__ import annotations

from typing import Any

from mplang_core import TableType
from mplang_tables.columns import check_table


def arrow_schema(kind: TableType) -> Any:
    """Return the ``pyarrow.Schema`` of a table type: all columns nullable, without metadata.

    Raises:
        TypeError: the type of a column is not supported.
        ValueError: there are no or too many columns, or their names are not unique.

    Example:
        >>> arrow_schema(TableType((("age", "int64"),)))
        age: int64
    """
    from mplang_tables import arrow

    return arrow.schema(kind)


def table_type(found: Any) -> TableType:
    """Return the table type of a ``pyarrow.Schema`` or a ``pyarrow.Table``.

    Args:
        found: the schema, or a table; whether columns are nullable, and metadata, are left out.

    Raises:
        TypeError: the type of a column is not supported.
        ValueError: there are no or too many columns, or their names are not unique.

    Example:
        >>> import pyarrow as pa
        >>> print(table_type(pa.schema([("price", pa.decimal128(10, 2))])))
        table<["price", "decimal128(10, 2)"]>
    """
    from mplang_tables import arrow

    kind = arrow.type_of(found)
    check_table(kind)
    return kind

"""Writer of one table of a database, in a process of its own.

It is asked for ``url`` and ``table``, and has a Parquet file open, whose rows take the place of
those of the table, in one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mplang_tables.ext import quoted

from mplang_data.apart.child import Task
from mplang_data.apart.database import connect, reach
from mplang_data.description import SourceError

LOCK_TIMEOUT = 60  # seconds that others may use the table
MAX_NAME = 63  # bytes; PostgreSQL cuts a longer one

_IN_POSTGRESQL = {
    "int8": "int16", "uint8": "int16", "uint16": "int32", "uint32": "int64",
    "uint64": "decimal(20, 0)",
}  # fmt: skip
"""What PostgreSQL has in place of types that it has not."""


def write(asked: dict[str, Any], files: Sequence[int]) -> None:
    """Replace the rows of a table; make the table if it is not there.

    Args:
        asked: ``url`` of the database, as Ibis takes it; ``table``, perhaps with its schema, such
            as ``public.scores``.
        files: descriptor of the Parquet file.

    Raises:
        SourceError: the table has other columns, or cannot keep these.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from ibis.common.exceptions import TableNotFound  # type: ignore[import-untyped]

    database = connect(asked)
    fill = _fill_duckdb if database.name == "duckdb" else _fill_postgresql
    schema, _, name = asked["table"].rpartition(".")
    where = {"database": schema or None}
    with os.fdopen(os.dup(files[0]), "rb") as opened, pq.ParquetFile(opened) as rows:
        wanted = _columns(database.name, rows.schema_arrow)
        try:
            there = dict(database.table(name, **where).schema())
        except TableNotFound:
            database.create_table(name, schema=wanted, **where)
            there = wanted
        _check(there, wanted)
        fill(database.con, ".".join(map(quoted, filter(None, (schema, name)))), rows)


def _columns(backend: str, schema: Any) -> dict[str, Any]:
    """Return the types of columns that a database has for those of Arrow."""
    import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

    replaced = {} if backend == "duckdb" else _IN_POSTGRESQL
    found = {}
    for field in schema:
        kind = str(field.type)
        if kind in ("timestamp[ns]", "time64[ns]"):
            raise SourceError(f"column {field.name!r} has nanoseconds, and a table microseconds")
        if backend != "duckdb" and len(field.name.encode()) > MAX_NAME:
            raise SourceError(f"a column has a name of more than {MAX_NAME} bytes")
        other = replaced.get(kind)
        found[field.name] = dt.dtype(other) if other else dt.DataType.from_pyarrow(field.type)
    return found


def _check(there: dict[str, Any], wanted: dict[str, Any]) -> None:
    if sorted(there) != sorted(wanted):
        raise SourceError("the table there has other columns")
    for name, kind in wanted.items():
        if _plain(there[name]) != _plain(kind):
            raise SourceError(f"column {name!r} of the table there is of another type than {kind}")


def _plain(kind: Any) -> Any:
    """Return a type without what says how it is kept."""
    import ibis.expr.datatypes as dt

    if isinstance(kind, dt.Timestamp):
        kind = dt.Timestamp(kind.timezone)
    return kind(nullable=True)


def _fill_duckdb(connection: Any, table: str, rows: Any) -> None:
    connection.execute("BEGIN")
    connection.execute(f"DELETE FROM {table}")
    for number in range(rows.num_row_groups):
        group = rows.read_row_group(number)
        connection.register("mplang_rows", group)
        columns = ", ".join(map(quoted, group.column_names))
        connection.execute(f"INSERT INTO {table} ({columns}) FROM mplang_rows")
    connection.execute("COMMIT")


def _fill_postgresql(connection: Any, table: str, rows: Any) -> None:
    columns = ", ".join(map(quoted, rows.schema_arrow.names))
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}s'")
        # whoever writes it, too, would leave its rows among these
        cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(f"DELETE FROM {table}")
        with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for batch in rows.iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)


TASK = Task(write, "the database does not take it", reach)

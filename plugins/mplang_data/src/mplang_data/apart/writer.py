"""Writer of one table of a database: ``python -m mplang_data.apart.writer FILE``.

Its input is JSON: ``url`` and ``table``. It has a Parquet file open, whose rows take the place of
those of the table, in one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import ibis  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from mplang_data.apart.child import connect, serve
from mplang_data.description import SourceError


def write(asked: dict[str, Any], file: int) -> None:
    """Replace the rows of a table; make the table if it is not there.

    Args:
        asked: ``url`` of the database, as Ibis takes it; ``table``, perhaps with its schema, such
            as ``public.scores``.
        file: descriptor of the Parquet file.

    Raises:
        SourceError: the table has other columns.
    """
    database = connect(asked["url"], read_only=False)
    schema, _, name = asked["table"].rpartition(".")
    where = {"database": schema or None}
    with os.fdopen(os.dup(file), "rb") as opened, pq.ParquetFile(opened) as rows:
        if name not in database.list_tables(**where):
            database.create_table(name, schema=ibis.schema(rows.schema_arrow), **where)
        columns = rows.schema_arrow.names
        if sorted(database.table(name, **where).schema().names) != sorted(columns):
            raise SourceError("the table there has other columns")
        table = _quoted([name] if not schema else [schema, name], ".")
        into = f"{table} ({_quoted(columns, ', ')})"
        fill = _fill_duckdb if database.name == "duckdb" else _fill_postgresql
        fill(database.con, f"DELETE FROM {table}", into, rows)


def _fill_duckdb(connection: Any, delete: str, into: str, rows: Any) -> None:
    connection.execute("BEGIN")
    connection.execute(delete)
    for number in range(rows.num_row_groups):
        connection.register("mplang_rows", rows.read_row_group(number))
        connection.execute(f"INSERT INTO {into} FROM mplang_rows")
    connection.execute("COMMIT")


def _fill_postgresql(connection: Any, delete: str, into: str, rows: Any) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(delete)
        with cursor.copy(f"COPY {into} FROM STDIN") as copy:
            for batch in rows.iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)


def _quoted(names: Sequence[str], between: str) -> str:
    return between.join('"' + name.replace('"', '""') + '"' for name in names)


if __name__ == "__main__":
    serve(write, "the database does not take it")

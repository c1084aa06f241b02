"""Reader of one table of a database, in a process of its own.

It is asked for ``url``, ``table``, ``columns``, ``limit``, ``match`` and ``connected``. It
writes the rows to a file that it has open, as an Arrow IPC file, and no more than ``size`` bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mplang_data.apart import duckdb_file
from mplang_data.apart.child import Task, tell_connected
from mplang_data.apart.database import connect, reach
from mplang_data.description import SourceError

CHUNK = 10_000  # rows that are read at a time


def read(asked: dict[str, Any], files: Sequence[int]) -> None:
    """Write columns of a table to a file.

    Args:
        asked: ``url`` of the database, as Ibis takes it; ``table``, perhaps with its schema, such
            as ``public.patients``; ``columns`` with their types; ``limit``, how many rows are
            read, or ``None``; ``match``, columns that are there, too; ``size``, bytes of the rows.
        files: descriptor of the file.

    Raises:
        SourceError: the table is of other types, or has more bytes.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    from mplang_core import TableType
    from mplang_data.columns import check_schema, check_there

    kind = TableType(tuple((name, type) for name, type in asked["columns"]))
    schema, _, name = asked["table"].rpartition(".")
    database = connect(asked)
    tell_connected(asked["connected"])
    table = duckdb_file.table if database.name == "duckdb" else type(database).table
    found = table(database, name, database=schema or None)
    check_there(asked["match"], found.columns)
    check_schema(found.schema().to_pyarrow(), kind)
    wanted = found.select([column for column, _ in kind.columns])
    if asked["limit"] is not None:
        wanted = wanted.limit(asked["limit"])
    size = asked["size"]
    with os.fdopen(os.dup(files[0]), "wb") as sink:
        rows = wanted.to_pyarrow_batches(chunk_size=CHUNK)
        with pa.ipc.new_file(sink, rows.schema) as writer:
            for batch in rows:
                if sink.tell() + batch.nbytes > size:
                    raise SourceError(f"it has more than {size} bytes (size, in the catalogue)")
                writer.write_batch(batch)


TASK = Task(read, "the database does not give it", reach)

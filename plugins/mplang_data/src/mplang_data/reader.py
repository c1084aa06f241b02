"""Reader of one table of a database: ``python -m mplang_data.reader FILE``.

Its input is JSON: ``url``, ``table``, ``columns`` and ``limit``. It writes the rows to a file that
it has open, as an Arrow IPC file, and prints what went wrong: ``error``, which tells no data, and
``detail``, which is for the owner.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

import ibis  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]

from mplang_core import TableType
from mplang_data.description import SourceError
from mplang_data.sources.tables import check_schema

PR_SET_PDEATHSIG = 1
CHUNK = 100_000  # rows that are read at a time


def read(url: str, table: str, kind: TableType, limit: int | None, file: int) -> None:
    """Write columns of a table to a file.

    Args:
        url: URL of the database, as Ibis takes it.
        table: the table, perhaps with its schema: ``public.patients``.
        kind: the columns.
        limit: how many rows are read; all if ``None``.
        file: descriptor of the file.

    Raises:
        SourceError: the table is not there, or of other types.
    """
    backend, _, place = url.partition(":")
    if backend == "duckdb":  # which would make a file that is not there
        database = ibis.duckdb.connect(place, read_only=True)
    else:
        database = ibis.connect(url)
    schema, _, name = table.rpartition(".")
    found = database.table(name, database=schema or None)
    check_schema(found.schema().to_pyarrow(), kind)
    wanted = found.select([column for column, _ in kind.columns])
    if limit is not None:
        wanted = wanted.limit(limit)
    with os.fdopen(os.dup(file), "wb") as sink:
        rows = wanted.to_pyarrow_batches(chunk_size=CHUNK)
        with pa.ipc.new_file(sink, rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)


def main() -> None:
    """Read what to read from stdin, and print what went wrong."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody would take the rows
    asked: dict[str, Any] = json.load(sys.stdin)
    kind = TableType(tuple((name, type) for name, type in asked["columns"]))
    told: dict[str, Any] = {"error": None, "detail": None}
    try:
        read(asked["url"], asked["table"], kind, asked["limit"], int(sys.argv[1]))
    except SourceError as error:
        told = {"error": str(error), "detail": ""}
    except Exception as error:  # of whatever reads it
        detail = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        told = {"error": "the database does not give it", "detail": detail}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()

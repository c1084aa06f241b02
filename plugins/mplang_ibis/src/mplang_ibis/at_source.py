"""SQL in a process of its own that has the sources: the process is confined, and DuckDB locked.

A connection takes 13 ms. So a process that forks others opens one, and each of these takes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import duckdb
from mplang_tables import arrow

from mplang_core import TableType
from mplang_core.ext import AdmissionError, KernelError
from mplang_ibis import query, settings
from mplang_ibis.bounds import Bounds
from mplang_ibis.joins import check_joins
from mplang_ibis.query import register as register
from mplang_ibis.repeatable import may_use_threads
from mplang_ibis.sql import check_names

PROGRESS = 1.0  # seconds
BATCH = 64 << 10  # rows

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    name: value for name, value in query.LOCKED.items() if name != "enable_external_access"
}
_OF_QUERIES = (*query.OF_VALUES, duckdb.OutOfMemoryException, UnicodeDecodeError)
_EXTREMES = "statistics_propagation"
"""Optimizer that takes min and max of Parquet files from what these tell of their groups of rows.

Where a column can have NaN, it takes that for the greatest number, though no row has it.
"""
_ready: list[duckdb.DuckDBPyConnection] = []
_taken: list[duckdb.DuckDBPyConnection] = []  # to close one takes longer than to end the process


class DamagedError(Exception):
    """DuckDB cannot read a source."""


def prepare() -> None:
    """Open a connection that the next :func:`connect` takes, perhaps in a fork of this process."""
    _ready.append(_open())


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection that reads files and attaches databases, until :func:`leave`."""
    _taken.append(_ready.pop() if _ready else _open())
    return _taken[-1]


def _open() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config=_CLOSED)
    made.execute("SET TimeZone = 'UTC'")
    made.execute("SET enable_profiling = 'no_output'")
    made.execute("SET explain_output = 'all'")  # what a view is, not what is left of it
    made.execute("SET parquet_metadata_cache = true")  # it looks at a file's end several times
    made.execute("SET enable_progress_bar = true")  # else it does not know how far it is
    made.execute("SET enable_progress_bar_print = false")
    made.execute(f"SET progress_bar_time = {int(PROGRESS * 1000)}")
    return made


@contextlib.contextmanager
def reported(
    con: duckdb.DuckDBPyConnection, report: Callable[[float], None], every: float = PROGRESS
) -> Iterator[None]:
    """Report how far a connection is, while it runs a query inside of ``with``.

    Args:
        con: the connection.
        report: is told which percentage is done, in a thread; -1 if it is not known.
        every: seconds between reports.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            report(con.query_progress())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def leave(con: duckdb.DuckDBPyConnection, paths: Sequence[str], memory: int) -> None:
    """Leave a connection some files alone.

    Args:
        con: the connection.
        paths: the files that it reads.
        memory: bytes that it may take.
    """
    con.execute("SET allowed_paths = $1", [list(paths)])
    con.execute("SET enable_external_access = false")
    con.execute(f"SET memory_limit = '{memory}B'")
    con.execute(f"SET disabled_optimizers = '{_EXTREMES}'")  # for what checks ranges


def run(
    con: duckdb.DuckDBPyConnection,
    sql: str,
    names: Collection[str],
    gives: TableType,
    bounds: Bounds,
    write: Callable[[Any], None],
) -> int:
    """Run one SELECT on a connection that knows its tables.

    Args:
        con: the connection, which reads nothing else; it is locked.
        sql: in the dialect of DuckDB.
        names: the names of the tables.
        gives: the type of the result.
        bounds: what it may take.
        write: takes the result in parts, Arrow tables of that type.

    Returns:
        The number of rows.

    Raises:
        AdmissionError: the SQL is not allowed; names what is refused.
        KernelError: it exceeds a bound, a join gave too many rows, the result does not fit in the
            type, or DuckDB fails on the data: its reason may have values, and is for the owner.
        DamagedError: a source cannot be read.
    """
    op, rows, size = "ibis.run", 0, 0
    try:
        check_names(list(names))
    except ValueError as error:  # one may be of the file that is attached
        raise AdmissionError(f"{op}: {error}", code="A005") from error
    query.admit_on(con, sql, names)
    with query.limited(con, op, bounds.seconds):
        if not (_has_extremes(con, sql) and _has_floats(con, names)):
            con.execute("SET disabled_optimizers = ''")
        con.execute(f"SET threads = {_threads(con, sql)}")
        con.execute("SET lock_configuration = true")
        bound = query.bind(con, sql)
        try:
            for batch in bound.to_arrow_reader(BATCH):
                part = _cast(batch, gives, op)
                rows, size = rows + part.num_rows, size + part.nbytes
                bounds.check(rows, size, op)
                write(part)
        except duckdb.InterruptException:
            raise
        except _OF_QUERIES as error:
            raise query.failure(bound, error, op) from error
        except query.FAILURES as error:
            raise DamagedError(str(error)) from error
        check_joins(json.loads(con.get_profiling_information("json")), op)
    return rows


def _has_extremes(con: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Return whether SQL asks for the smallest or largest value of anything."""
    names = (each.get("function_name", "") for each in query.nodes(query.parse_on(con, sql)))
    return not {"min", "max"}.isdisjoint(name.lower() for name in names)


def _has_floats(con: duckdb.DuckDBPyConnection, names: Collection[str]) -> bool:
    """Return whether a column of tables can have NaN, or the columns of one are not known."""
    asked = "SELECT table_name, data_type FROM duckdb_columns() WHERE list_contains($1, table_name)"
    columns = con.execute(asked, [list(names)]).fetchall()
    known = {table for table, _ in columns}
    return not known.issuperset(names) or any(
        kind in each for _, each in columns for kind in ("FLOAT", "DOUBLE")
    )


def _threads(con: duckdb.DuckDBPyConnection, sql: str) -> int:
    """Return how many threads a query may use, so that its result has the same bytes each time."""
    if not may_use_threads(sql, con):
        return 1
    return settings.current.threads or len(os.sched_getaffinity(0))


def _cast(batch: Any, gives: TableType, op: str) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    try:
        return arrow.cast(pa.Table.from_batches([batch]), gives)
    except ValueError as error:
        raise KernelError(f"{op}: {error}", code="R010") from error

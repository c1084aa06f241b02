"""SQL of programs on PostgreSQL, as batches of Arrow. Imports psycopg and Arrow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
from mplang_tables import arrow

from mplang_core import TableType
from mplang_core.ext import KernelError
from mplang_ibis.bounds import BOUNDS, Bounds
from mplang_ibis.engines.postgresql_joins import check_joins
from mplang_ibis.engines.statements import Offered, SqlStatement, to_dialect
from mplang_ibis.engines.types import SqlType, type_of_column
from mplang_ibis.sql import quoted
from mplang_ibis.unfit import UnfitTableError

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]
    Cursor: TypeAlias = psycopg.ServerCursor[tuple[object, ...]]

ROWS = 10_000  # of a batch
OP = "ibis.run"

_SETTINGS = {
    "search_path": "",  # pg_catalog alone: no function or operator of a user's
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "extra_float_digits": "1",
    "synchronize_seqscans": "off",  # a scan begins with the first row
    "cursor_tuple_fraction": "1",  # all rows of the cursor are read
    "client_connection_check_interval": "1000",  # ms: a reader that ends takes its query along
}

_ARROW = {
    "bool": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(),
    "int64": pa.int64(), "int128": pa.decimal128(38, 0), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "time": pa.time64("us"), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip

_THERE = {
    "bool": ("boolean",), "int16": ("smallint",), "int32": ("integer",), "int64": ("bigint",),
    "float": ("real",), "double": ("double precision",), "string": ("text", "character varying"),
    "binary": ("bytea",), "date": ("date",), "time": ("time without time zone",),
    "timestamp": ("timestamp without time zone",), "timestamptz": ("timestamp with time zone",),
}  # fmt: skip
"""PostgreSQL's types by ours, without what is in parentheses."""

_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
    coalesce(c.collisdeterministic, true)
FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""


def run_on_postgresql(
    connection: Connection,
    sql: str,
    tables: Mapping[str, Offered],
    gives: TableType,
    bounds: Bounds = BOUNDS,
    *,
    ordered: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the result of one SELECT on PostgreSQL, in batches.

    What runs is generated from DuckDB's syntax tree, in a transaction that reads only.

    Args:
        connection: to the database, in no transaction, and used by nobody else meanwhile.
        sql: in the dialect of DuckDB.
        tables: the views that its tables are, by name.
        gives: the type of the result.
        bounds: after which the query is ended.
        ordered: whether rows come in one order; else as the server gives them.

    Yields:
        A ``pyarrow.RecordBatch`` of that type; of an empty result one without rows.

    Raises:
        AdmissionError: the SQL is not allowed, or PostgreSQL would give another answer.
        UnfitTableError: a view is of another type.
        KernelError: it takes too long or gives too much, the result does not fit in its type, or
            PostgreSQL fails on the data: its reason may have values, and is for the owner.
    """
    statement = to_dialect(sql, "postgresql", tables, ordered=ordered)
    ends = time.monotonic() + bounds.seconds
    with _failures(bounds), connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        _configure(connection, statement, bounds)
        for offered in tables.values():
            _check(connection, offered)
        names = [_name(each) for each in tables.values()]
        check_joins(connection, statement.sql, sql, names, OP)
        _set(connection, "statement_timeout", _milliseconds(ends - time.monotonic()))
        with connection.cursor("mplang", binary=True) as cursor:
            cursor.execute(statement.sql.encode())
            yield from _batches(connection, cursor, statement, gives, bounds, ends)


def _configure(connection: Connection, statement: SqlStatement, bounds: Bounds) -> None:
    settings = dict(_SETTINGS)
    settings["statement_timeout"] = settings["lock_timeout"] = _milliseconds(bounds.seconds)
    settings["idle_in_transaction_session_timeout"] = _milliseconds(bounds.seconds)
    if statement.sums_floats:  # workers end in another order each time
        settings["max_parallel_workers_per_gather"] = "0"
    for name, value in settings.items():
        if name == "client_connection_check_interval" and connection.info.server_version < 140000:
            continue
        _set(connection, name, value)
    result = connection.execute("SHOW server_encoding").fetchone()
    if result != ("UTF8",):
        raise KernelError(
            f"{OP}: the database has the encoding {result}, and not UTF8", code="R010"
        )


def _set(connection: Connection, name: str, value: str) -> None:
    connection.execute("SELECT pg_catalog.set_config(%s, %s, true)", [name, value])


def _milliseconds(seconds: float) -> str:
    return str(max(1, min(int(seconds * 1000), 2**31 - 1)))


def _check(connection: Connection, offered: Offered) -> None:
    """Check that a view has the columns that its catalogue says, compared byte by byte."""
    rows = connection.execute(_COLUMNS, [_name(offered)])
    there = {row[0]: (str(row[1]), row[2]) for row in rows}
    if not there:
        raise KernelError(f"{OP}: there is no table or view {offered.parts[-1]!r}", code="R011")
    for column, kind in offered.kind.columns:
        wanted, result = type_of_column(kind), there.get(column)
        assert wanted is not None  # else it was refused
        if result is None:
            raise UnfitTableError(f"it has no column {column!r}")
        if not _is(result[0], wanted):
            raise UnfitTableError(
                f"column {column!r} is {result[0]} there, and {kind} in the catalogue; offer a "
                f"view that casts it to {_there(wanted)}"
            )
        if not result[1]:
            raise UnfitTableError(
                f"column {column!r} has a collation by which different texts are equal; offer a "
                'view with COLLATE "C"'
            )


def _name(offered: Offered) -> str:
    return ".".join(map(quoted, offered.parts))


def _is(result: str, wanted: SqlType) -> bool:
    if wanted.name == "decimal":
        return result == _there(wanted)
    name, _, rest = result.partition("(")
    return name + rest.partition(")")[2] in _THERE[wanted.name]


def _there(wanted: SqlType) -> str:
    if wanted.name == "decimal":
        return f"numeric({wanted.width},{wanted.scale})"
    return _THERE[wanted.name][0]


def _batches(
    connection: Connection,
    cursor: Cursor,
    statement: SqlStatement,
    gives: TableType,
    bounds: Bounds,
    ends: float,
) -> Iterator[pa.RecordBatch]:
    rows = size = 0
    while True:
        part = cursor.fetchmany(ROWS)
        if not part and rows:
            return
        rows += len(part)
        made = _table(part, statement, gives)
        size += made.nbytes
        bounds.check(rows, size, OP)
        yield from made.to_batches() or [pa.RecordBatch.from_pylist([], made.schema)]
        if len(part) < ROWS:
            return
        _set(connection, "statement_timeout", _milliseconds(ends - time.monotonic()))


def _table(rows: list[tuple[object, ...]], statement: SqlStatement, gives: TableType) -> pa.Table:
    """Return rows as a table of the declared type, without a digit lost."""
    if len(statement.types) != len(gives.columns):
        raise KernelError(f"{OP}: the result has {len(statement.types)} columns", code="R010")
    columns = zip(*rows, strict=True) if rows else [()] * len(statement.types)
    arrays = []
    for (name, _), kind, values in zip(gives.columns, statement.types, columns, strict=True):
        try:
            arrays.append(pa.array(values, _arrow(kind)))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise KernelError(
                f"{OP}: column {name!r} has a value that is not a {kind}", code="R010"
            ) from error
    try:
        return arrow.cast(pa.Table.from_arrays(arrays, [name for name, _ in gives.columns]), gives)
    except ValueError as error:
        raise KernelError(f"{OP}: {error}", code="R010") from error


def _arrow(kind: SqlType) -> pa.DataType:
    return pa.decimal128(kind.width, kind.scale) if kind.name == "decimal" else _ARROW[kind.name]


@contextlib.contextmanager
def _failures(bounds: Bounds) -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise KernelError(
            f"{OP}: the query took longer than {bounds.seconds:g} s", code="R010"
        ) from error
    except psycopg.Error as error:
        reason = str(error).split("\n", 1)[0]
        raise KernelError(f"{OP}: PostgreSQL fails: {reason}", code="R010") from error

"""SQL of programs on Spark, as batches of Arrow. Imports gRPC and Arrow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
from mplang_ibis.ext import SPARK_SETTINGS, Bounds, Offered, UnfitTableError, to_dialect
from mplang_tables import arrow

from mplang_core import TableType
from mplang_core.ext import KernelError
from mplang_spark.connect import SparkConnection

OP = "ibis.run"
ENGINE = "spark"
_NO_BOUNDS = Bounds()

_THERE = {
    "bool": "boolean", "int8": "byte", "int16": "short", "int32": "integer", "int64": "long",
    "float": "float", "double": "double", "string": "string", "binary": "binary",
    "date32[day]": "date", "timestamp[us]": "timestamp_ntz", "timestamp[us, tz=UTC]": "timestamp",
}  # fmt: skip
"""Spark's types by those of columns."""
_CASTS = {
    "byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT",
}  # fmt: skip
"""Names of types in SQL, where they are others."""


def run_on_spark(
    connection: SparkConnection,
    sql: str,
    tables: Mapping[str, Offered],
    gives: TableType,
    bounds: Bounds = _NO_BOUNDS,
    *,
    ordered: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the result of one SELECT on Spark, in batches.

    What runs is generated from DuckDB's syntax tree, in a session whose options are those that it
    depends on.

    Args:
        connection: to the server, used by nobody else meanwhile.
        sql: in the dialect of DuckDB.
        tables: the tables or views that its tables are, by name.
        gives: the type of the result.
        bounds: after which the query is ended.
        ordered: whether rows come in one order; else as Spark gives them.

    Yields:
        A ``pyarrow.RecordBatch`` of that type; of an empty result one without rows.

    Raises:
        AdmissionError: the SQL is not allowed, or Spark would give another answer.
        UnfitTableError: a table is of another type.
        KernelError: it takes too long or gives too much, the result does not fit in its type, or
            Spark fails on the data: its reason may have values, and is for the owner.
    """
    statement = to_dialect(sql, ENGINE, tables, ordered=ordered)
    if len(statement.types) != len(gives.columns):
        raise KernelError(f"{OP}: the result has {len(statement.types)} columns", code="R010")
    ends = time.monotonic() + bounds.seconds
    rows = size = 0
    with _failures(bounds):
        _configure(connection)
        for offered in tables.values():
            _check(connection, offered)
        with contextlib.closing(connection.query(statement.sql, ends - time.monotonic())) as parts:
            for part in parts:
                made = _cast(part, gives)
                rows, size = rows + made.num_rows, size + made.nbytes
                bounds.check(rows, size, OP)
                yield from made.to_batches()
    if not rows:
        yield pa.RecordBatch.from_pylist([], arrow.schema(gives))


def _configure(connection: SparkConnection) -> None:
    """Set the options of the session, and look whether they are set."""
    result = connection.configure(SPARK_SETTINGS)
    for name, value in SPARK_SETTINGS.items():
        if (result.get(name) or "").lower() != value.lower():
            raise KernelError(
                f"{OP}: Spark's option {name} is {result.get(name)}, and not {value}", code="R010"
            )


def _check(connection: SparkConnection, offered: Offered) -> None:
    """Check that a table has the types that its owner says."""
    there = connection.columns(offered.parts)
    for column, kind in offered.kind.columns:
        wanted = _spark_type(kind)
        if column not in there:
            raise UnfitTableError(f"it has no column {column!r}")
        if there[column] == wanted or (wanted, there[column]) == ("string", "var_char"):
            continue
        cast = _CASTS.get(wanted, wanted).upper()
        raise UnfitTableError(
            f"column {column!r} is {there[column]} there, and {kind} in the catalogue; offer a "
            f"view that casts it to {cast}"
        )


def _spark_type(kind: str) -> str:
    if kind.startswith("decimal128("):
        return kind.replace("decimal128", "decimal").replace(" ", "")
    return _THERE[kind]


def _cast(batch: pa.RecordBatch, gives: TableType) -> pa.Table:
    """Return a batch as a table of the declared type, without a digit lost."""
    names = [name for name, _ in gives.columns]
    try:
        return arrow.cast(pa.Table.from_batches([batch.rename_columns(names)]), gives)
    except (ValueError, pa.ArrowException) as error:
        raise KernelError(f"{OP}: {error}", code="R010") from error


@contextlib.contextmanager
def _failures(bounds: Bounds) -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        code = error.code()
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            why = f"{OP}: the query took longer than {bounds.seconds:g} s"
            raise KernelError(why, code="R010") from error
        reason = " ".join(str(error.details()).split())[:500]
        raise KernelError(
            f"{OP}: Spark fails ({code.name.lower()}): {reason}", code="R010"
        ) from error

"""SQL over tables of Spark, in a process of its own that has the connection alone. Imports gRPC."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
from mplang_confinement import give_up_calls
from mplang_data import SourceError, SourceUnreachableError
from mplang_data.ext import Published, Queried, SourceQuery, check_there
from mplang_ibis.ext import Bounds, Offered, UnfitTableError
from mplang_tables.ext import quoted

from mplang_core import TableType
from mplang_spark.address import Address
from mplang_spark.connect import SparkConnection
from mplang_spark.run import run_on_spark

READY_TIMEOUT = 30.0  # seconds, until a server takes calls


def query(address: Address, tables: Sequence[Queried], asked: SourceQuery) -> None:
    """Run one SELECT; see :meth:`mplang_data.Source.query`."""
    bounds = Bounds(asked.rows, asked.size, asked.seconds)
    offered = {each.name: Offered(_kind(each), parts_of(each.where)) for each in tables}
    with SparkConnection(address) as connection:
        try:
            connection.wait(READY_TIMEOUT)
        except grpc.FutureTimeoutError:
            raise SourceUnreachableError("its server takes no calls") from None
        give_up_calls()  # to connect to anything else, or to it again
        asked.connected()
        run = functools.partial(run_on_spark, connection, tables=offered, bounds=bounds)
        try:
            for each in tables:
                if each.match:
                    check_there(each.match, list(connection.columns(parts_of(each.where))))
                published = Published(each.opened.description, _kind(each))
                published.check_by(lambda sql, gives: run(sql, gives=gives), quoted(each.name))
            for batch in run(asked.sql, gives=asked.gives, ordered=asked.ordered):
                asked.write(pa.Table.from_batches([batch]))
        except UnfitTableError as error:
            raise SourceError(str(error)) from None


def parts_of(where: str) -> tuple[str, ...]:
    """Return the schema and the name of the table of a place.

    Example:
        >>> parts_of("sc://spark.bank.example#bank.offered"), parts_of("sc://localhost#people")
        (('bank', 'offered'), ('default', 'people'))
    """
    schema, _, name = where.rpartition("#")[2].rpartition(".")
    return (schema or "default", name)


def _kind(table: Queried) -> TableType:
    assert isinstance(table.kind, TableType)
    return table.kind

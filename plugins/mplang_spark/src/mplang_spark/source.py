"""Kind of source of tables in Spark. Imports no gRPC."""

from __future__ import annotations

import contextlib
import functools
import importlib
import socket
from collections.abc import Sequence

from mplang_confinement import give_up_calls
from mplang_data import DataSet, SourceError, SourceUnreachableError
from mplang_data.ext import Database, Queried, Reach, SourceQuery, reach_of_network
from mplang_tables.ext import quoted

from mplang_core import BaseType, TableType
from mplang_spark.address import Address, parse_address

CONNECT_TIMEOUT = 5.0  # seconds, to see whether a server is there
READY_TIMEOUT = 30.0  # seconds, until it takes calls
_IMPORTS = ("mplang_spark.run", "mplang_data.relations", "mplang_data.columns")


class SparkTables(Database):
    """A table or view of Spark, such as ``spark:sc://spark.bank.example:15002#bank.patients``.

    SQL over it runs in Spark, by Spark Connect: one connection, over which plans go, and no code.
    """

    kind = "spark"
    engine = "spark"

    def place(self, where: str, folder: str) -> str:
        """Return the place; see :class:`mplang_data.Source`."""
        _address(where)
        return super().place(where, folder)

    def reach(self, where: str) -> None:
        """Check that the server takes connections; send nothing.

        Raises:
            SourceUnreachableError: it does not.
        """
        address = _address(where)
        try:
            socket.create_connection((address.host, address.port), CONNECT_TIMEOUT).close()
        except OSError as error:
            raise SourceUnreachableError("its server takes no connections") from error

    def engine_key(self, data_set: DataSet, kind: BaseType) -> str | None:
        """Return its server and account; see :class:`mplang_data.Source`."""
        floats = [type for _, type in getattr(kind, "columns", ()) if type in ("float", "double")]
        if data_set.nan is not None and floats:
            return None  # NaN as a missing number is DuckDB's and Arrow's to read
        return f"spark:{data_set.where.rpartition('#')[0]}"

    def prepare(self) -> None:
        """Import the client, which starts no thread; see :class:`mplang_data.Source`."""
        with contextlib.suppress(ImportError):  # tells whoever has such a source
            for module in _IMPORTS:
                importlib.import_module(module)

    def access(self, tables: Sequence[Queried], size: int) -> Reach:
        """Return the server, and files of keys; see :class:`mplang_data.Source`."""
        address = _address(tables[0].where)
        reached = reach_of_network([address.port], address.files)
        return reached._replace(imports=_IMPORTS, written=size + (reached.written or 0))

    def query(self, tables: Sequence[Queried], asked: SourceQuery) -> None:
        """Run one SELECT on tables of one server; see :class:`mplang_data.Source`."""
        import pyarrow as pa  # type: ignore[import-untyped]
        from mplang_data.ext import Published
        from mplang_ibis.ext import Bounds, Offered, UnfitTableError

        from mplang_spark.connect import SparkConnection
        from mplang_spark.run import run_on_spark

        bounds = Bounds(asked.rows, asked.size, asked.seconds)
        offered = {each.name: Offered(_kind(each), _parts(each)) for each in tables}
        with SparkConnection(_address(tables[0].where)) as connection:
            _wait(connection)
            give_up_calls()  # to connect to anything else
            asked.connected()
            run = functools.partial(run_on_spark, connection, tables=offered)
            try:
                for each in tables:
                    _check_match(connection, each)
                    published = Published(each.opened.description, _kind(each))
                    published.check_by(
                        lambda sql, gives: run(sql, gives=gives, bounds=bounds), quoted(each.name)
                    )
                for batch in run(
                    asked.sql, gives=asked.gives, bounds=bounds, ordered=asked.ordered
                ):
                    asked.write(pa.Table.from_batches([batch]))
            except UnfitTableError as error:
                raise SourceError(str(error)) from None


def _address(where: str) -> Address:
    try:
        return parse_address(where.rpartition("#")[0] or where)
    except ValueError as error:
        raise SourceError(str(error)) from None


def _wait(connection: object) -> None:
    """Wait until the server takes calls, over the one connection that there is.

    Raises:
        SourceUnreachableError: it does not.
    """
    import grpc

    from mplang_spark.connect import SparkConnection

    assert isinstance(connection, SparkConnection)
    try:
        connection.wait(READY_TIMEOUT)
    except grpc.FutureTimeoutError:
        raise SourceUnreachableError("its server takes no calls") from None


def _check_match(connection: object, table: Queried) -> None:
    from mplang_data.ext import check_there

    from mplang_spark.connect import SparkConnection

    assert isinstance(connection, SparkConnection)
    if table.match:
        check_there(table.match, list(connection.columns(_parts(table))))


def _parts(table: Queried) -> tuple[str, ...]:
    schema, _, name = table.where.rpartition("#")[2].rpartition(".")
    return (schema or "default", name)


def _kind(table: Queried) -> TableType:
    assert isinstance(table.kind, TableType)
    return table.kind

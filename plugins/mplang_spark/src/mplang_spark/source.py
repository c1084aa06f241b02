"""Kind of source of tables in Spark. Imports no gRPC."""

from __future__ import annotations

import contextlib
import importlib
import socket
from collections.abc import Sequence

from mplang_data import SourceError, SourceUnreachableError
from mplang_data.ext import Database, Queried, Reach, SourceQuery, reach_of_network

from mplang_spark.address import Address, parse_address

CONNECT_TIMEOUT = 5.0  # seconds, to see whether a server is there
_IMPORTS = ("mplang_spark.query",)


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
        from mplang_spark.query import query

        query(_address(tables[0].where), tables, asked)


def _address(where: str) -> Address:
    try:
        return parse_address(where.rpartition("#")[0] or where)
    except ValueError as error:
        raise SourceError(str(error)) from None

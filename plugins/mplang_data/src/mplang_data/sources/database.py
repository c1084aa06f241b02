"""Tables of databases, read by a confined process, which alone has the password."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mplang_core import BaseType, TableType
from mplang_data.apart import run_apart
from mplang_data.description import SIZE, SourceError, SourceUnreachableError
from mplang_data.sources.arrow_file import ArrowFiles

PORT = 5432  # of PostgreSQL
CONNECT_TIMEOUT = 5.0  # seconds


class Database(ArrowFiles):
    """A table or view of a database, which Ibis connects to.

    A place is what follows the kind in Ibis's URL, and the table after ``#``, perhaps with its
    schema. The columns that a program asks for are read, into a file in memory.
    """

    kind: str
    reads_when_opened = True  # no more is to be done in a process of its own

    def place(self, where: str, folder: str) -> str:
        """Return the place; see :class:`mplang_data.Source`."""
        if "#" not in where or where.endswith("#"):
            raise SourceError("its place ends with the table: #patients, or #schema.patients")
        return where

    def probe(self, files: Sequence[int], kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Compare what was read, perhaps no row; see :class:`mplang_data.Source`."""
        self.read(files, kind)
        return None

    def open(
        self,
        where: str,
        kind: BaseType,
        match: Sequence[str] = (),
        *,
        rows: bool = True,
        size: int = SIZE,
    ) -> list[int]:
        """Read the columns of a table; see :class:`mplang_data.Source`."""
        if not isinstance(kind, TableType):
            raise SourceError(f"it is a table, and not {kind}")
        url, _, table = where.rpartition("#")
        asked = {
            "url": f"{self.kind}:{url}", "table": table, "columns": kind.columns,
            "match": list(match), "limit": None if rows else 0, "writes": False,
        }  # fmt: skip
        file = os.memfd_create("mplang-data", os.MFD_CLOEXEC)
        try:
            run_apart("mplang_data.apart.reader", asked, [file], size=size, connects=True)
        except BaseException:
            os.close(file)
            raise
        return [file]


class PostgreSql(Database):
    """A table or view of PostgreSQL, such as ``postgresql://reader@db.example/bank#patients``.

    A password is better kept in a file that the URL names: ``?passfile=/etc/bank/pgpass``.
    """

    kind = "postgresql"
    engine = "postgresql"

    def reach(self, where: str) -> None:
        """Check that the server takes connections; send nothing.

        Raises:
            SourceUnreachableError: it does not.
        """
        parts = urlsplit(f"{self.kind}:{where.rpartition('#')[0]}")
        fields = dict(parse_qsl(parts.query))
        host = fields.get("host") or parts.hostname
        if not host or host.startswith("/"):
            return  # libpq decides where it is
        try:
            port = int(fields.get("port") or parts.port or PORT)
            socket.create_connection((host, port), CONNECT_TIMEOUT).close()
        except (OSError, ValueError) as error:
            raise SourceUnreachableError("its server takes no connections") from error


class DuckDbFile(Database):
    """A table or view of a DuckDB file, such as ``duckdb:bank.duckdb#accounts``."""

    kind = "duckdb"

    def reach(self, where: str) -> None:
        """Check that the file is there; read nothing.

        Raises:
            SourceUnreachableError: it is not.
        """
        try:
            os.close(os.open(where.rpartition("#")[0], os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            raise SourceUnreachableError("its file cannot be opened") from error

    def files(self, where: str) -> list[int]:
        """Return none, once the file is there; see :class:`mplang_data.sources.SqlSource`."""
        self.reach(where)
        return []

    def paths(self, where: str, files: Sequence[int]) -> list[str]:
        """Return the file and its log; see :class:`mplang_data.sources.SqlSource`."""
        path = where.rpartition("#")[0]
        return [path, f"{path}.wal"]

    def relation(self, con: Any, where: str, files: Sequence[int], kind: TableType) -> str | None:
        """Attach the file; see :class:`mplang_data.sources.SqlSource`."""
        from mplang_data.apart import duckdb_file

        path, _, table = where.rpartition("#")
        return duckdb_file.attached(con, path, table)

    def place(self, where: str, folder: str) -> str:
        """Return the place, with the path of the file; see :class:`mplang_data.Source`."""
        return os.path.join(os.path.abspath(folder), super().place(where, folder))

"""Tables of databases, read and queried by a confined process, which alone has the password."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mplang_core import BaseType, TableType
from mplang_data.apart import TIMEOUT
from mplang_data.apart.child import Reach
from mplang_data.apart.database import PORT
from mplang_data.apart.rows import read_apart
from mplang_data.description import SIZE, SourceError, SourceUnreachableError
from mplang_data.sources import postgresql_engine
from mplang_data.sources.arrow_file import ArrowFiles
from mplang_data.sources.source import Placed, Queried, SourceQuery

CONNECT_TIMEOUT = 5.0  # seconds


class Database(ArrowFiles):
    """A table or view of a database, which is read by :meth:`mplang_data.Source.query`.

    A place is a URL without the kind, and the table after ``#``, perhaps with its schema. It has no
    files: what :meth:`open` returns is the columns that it has selected.

    Attributes:
        kind: its name in the group ``mplang.sources``.
    """

    kind: str

    def place(self, where: str, folder: str) -> str:
        """Return the place; see :class:`mplang_data.Source`."""
        if "#" not in where or where.endswith("#"):
            raise SourceError("its place ends with the table: #patients, or #schema.patients")
        return where

    def engine_key(self, data_set: Placed, kind: BaseType) -> str | None:
        """Return its kind, server and account; see :class:`mplang_data.Source`."""
        if self.engine is None:
            return super().engine_key(data_set, kind)
        floats = [type for _, type in getattr(kind, "columns", ()) if type in ("float", "double")]
        if data_set.nan is not None and floats:
            return None  # NaN as a missing number is DuckDB's and Arrow's to read
        return f"{self.kind}:{data_set.where.rpartition('#')[0]}"

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
        table = {
            "kind": self.kind, "where": where, "files": self.files(where, kind), "type": str(kind),
            "description": {"columns": dict(kind.columns)}, "match": list(match), "arguments": {},
        }  # fmt: skip
        request = {"tables": {"": table}, "rows": rows, "result": {"size": size}}
        connects = self.engine is not None
        return [read_apart(request, [], size=size, seconds=TIMEOUT, connects=connects)]

    def files(self, where: str, kind: BaseType, *, size: int = SIZE) -> list[int]:
        """Return none; see :class:`mplang_data.Source`."""
        return []


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

    def prepare(self) -> None:
        """Import its driver; see :class:`mplang_data.Source`."""
        postgresql_engine.prepare()

    def access(self, tables: Sequence[Queried], size: int) -> Reach:
        """Return the server, and what libpq reads; see :class:`mplang_data.Source`."""
        return postgresql_engine.access(tables, size)

    def query(self, tables: Sequence[Queried], asked: SourceQuery) -> None:
        """Run one SELECT on tables of one server; see :class:`mplang_data.Source`."""
        postgresql_engine.query(tables, asked)


class DuckDbFile(Database):
    """A table or view of a DuckDB file, such as ``duckdb:bank.duckdb#accounts``."""

    kind = "duckdb"

    def reach(self, where: str) -> None:
        """Check that the file is there, and nobody writes to it; read nothing.

        Raises:
            SourceUnreachableError: it is not.
        """
        path, flags = where.rpartition("#")[0], os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            file = os.open(path, flags)
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as DuckDB does
            finally:
                os.close(file)
        except OSError as error:
            raise SourceUnreachableError("its file cannot be reached") from error

    def files(self, where: str, kind: BaseType, *, size: int = SIZE) -> list[int]:
        """Return none, once the file is there; see :class:`mplang_data.Source`."""
        self.reach(where)
        return []

    def paths(self, where: str, files: Sequence[int]) -> list[str]:
        """Return the file and its log; see :class:`mplang_data.Source`."""
        path = where.rpartition("#")[0]
        return [path, f"{path}.wal"]

    def relation(self, con: Any, where: str, files: Sequence[int], kind: TableType) -> str | None:
        """Attach the file; see :class:`mplang_data.Source`."""
        from mplang_data.apart import duckdb_file

        path, _, table = where.rpartition("#")
        return duckdb_file.attached(con, path, table)

    def place(self, where: str, folder: str) -> str:
        """Return the place, with the path of the file; see :class:`mplang_data.Source`."""
        return os.path.join(os.path.abspath(folder), super().place(where, folder))

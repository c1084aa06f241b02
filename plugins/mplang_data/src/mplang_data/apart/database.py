"""Databases, as confined processes ask them: what these reach, and the connection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mplang_confinement import CONNECT, give_up_calls

from mplang_data.apart import MAX_TOLD, duckdb_file
from mplang_data.apart.child import Reach

PORT = 5432  # of PostgreSQL

_OF_NETWORK = (
    "/etc/hosts", "/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
)  # fmt: skip
_OF_LIBPQ = (".pgpass", ".pg_service.conf", ".postgresql")
_IMPORTS = ("mplang_data.columns", "pyarrow.parquet", "ibis.formats.pyarrow")
_IMPORTS_OF = {
    "duckdb": ("ibis.backends.duckdb", "ibis.backends.sql.compilers.duckdb"),
    "postgresql": ("ibis.backends.postgres", "ibis.backends.sql.compilers.postgres", "psycopg"),
}


def reach(asked: dict[str, Any], files: Sequence[int] = ()) -> Reach:
    """Return what a process reaches that reads, or writes, a table.

    Args:
        asked: ``url`` of the database, ``writes``, and ``size`` in bytes of what is read.
        files: descriptors of open files.
    """
    kind, _, place = asked["url"].partition(":")
    written = None if asked["writes"] else asked["size"] + MAX_TOLD
    imports = [*_IMPORTS, *_IMPORTS_OF[kind]]
    if kind == "duckdb":
        if asked["writes"]:  # beside it DuckDB keeps a log of what is not in it yet
            folder = os.path.dirname(os.path.realpath(place))
            return Reach(writable=[folder], written=None, imports=imports)
        return Reach(readable=[place, f"{place}.wal"], written=written, imports=imports)
    parts = urlsplit(asked["url"])
    fields = dict(parse_qsl(parts.query))
    named = [*fields.values(), *(v for name, v in os.environ.items() if name.startswith("PG"))]
    return Reach(
        readable=[
            *_OF_NETWORK,
            *(os.path.expanduser(f"~/{name}") for name in _OF_LIBPQ),
            *filter(os.path.isabs, named),
        ],
        ports=[int(fields.get("port") or parts.port or PORT)],
        calls=CONNECT,
        written=written,
        imports=imports,
    )


def connect(asked: dict[str, Any]) -> Any:
    """Connect to a database; then give up to connect to anything else.

    Args:
        asked: ``url`` of the database, as Ibis takes it, ``writes``, and ``size`` in bytes.
    """
    backend, _, place = asked["url"].partition(":")
    if backend == "duckdb":
        return duckdb_file.connect(place, read_only=not asked["writes"], memory=asked["size"])
    import ibis  # type: ignore[import-untyped]

    os.environ.setdefault("PGCONNECT_TIMEOUT", "30")  # seconds
    made = ibis.connect(asked["url"])
    give_up_calls()
    return made

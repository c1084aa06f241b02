"""Databases, as confined processes reach them, and the connection of one that writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mplang_confinement import CONNECT, give_up_calls

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

_CLOSED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
"""Settings of DuckDB with which a file reaches no other file, and no network."""


def reach_of_network(ports: Sequence[int], files: Sequence[str] = ()) -> Reach:
    """Return what a process reaches that connects to a server.

    Args:
        ports: of the server, on whatever host.
        files: that it reads, such as keys.
    """
    return Reach(readable=[*_OF_NETWORK, *files], ports=ports, calls=CONNECT)


def reach_of_libpq(url: str) -> Reach:
    """Return what a process reaches that connects to PostgreSQL."""
    parts = urlsplit(url)
    fields = dict(parse_qsl(parts.query))
    named = [*fields.values(), *(v for name, v in os.environ.items() if name.startswith("PG"))]
    own = (os.path.expanduser(f"~/{name}") for name in _OF_LIBPQ)
    port = int(fields.get("port") or parts.port or PORT)
    return reach_of_network([port], [*own, *filter(os.path.isabs, named)])


def reach(asked: dict[str, Any], files: Sequence[int] = ()) -> Reach:
    """Return what a process reaches that writes a table.

    Args:
        asked: ``url`` of the database.
        files: descriptors of open files.
    """
    kind, _, place = asked["url"].partition(":")
    imports = [*_IMPORTS, *_IMPORTS_OF[kind]]
    if kind == "duckdb":  # beside it DuckDB keeps a log of what is not in it yet
        folder = os.path.dirname(os.path.realpath(place))
        return Reach(writable=[folder], written=None, imports=imports)
    return reach_of_libpq(asked["url"])._replace(written=None, imports=imports)


def connect(asked: dict[str, Any]) -> Any:
    """Connect to a database to write; then give up to connect to anything else.

    Args:
        asked: ``url`` of the database, as Ibis takes it, and ``size`` in bytes.
    """
    import ibis  # type: ignore[import-untyped]

    backend, _, place = asked["url"].partition(":")
    if backend == "duckdb":
        made = ibis.duckdb.connect(place, memory_limit=f"{asked['size']}B", **_CLOSED)
        made.con.execute("SET lock_configuration = true")  # after Ibis's own settings
        return made
    os.environ.setdefault("PGCONNECT_TIMEOUT", "30")  # seconds
    made = ibis.connect(asked["url"])
    give_up_calls()
    return made

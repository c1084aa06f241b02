"""SQL over tables of PostgreSQL, in a process of its own that has the connection alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_confinement import give_up_calls

from mplang_core import TableType
from mplang_data.apart import MAX_TOLD, database
from mplang_data.apart.child import Reach, tell_connected
from mplang_data.holding import Queried
from mplang_data.relations import Published, quoted

CONNECT_TIMEOUT = 30  # seconds
_IMPORTS = ("psycopg", "mplang_ibis.ext")


def reach(tables: Sequence[Queried], size: int) -> Reach:
    """Return what a process reaches that queries tables of one server.

    Args:
        tables: the tables.
        size: bytes of the result.
    """
    asked = {"url": f"postgresql:{_url(tables[0])}", "writes": False, "size": size}
    return database.reach(asked)._replace(imports=_IMPORTS, written=size + MAX_TOLD)


def query(
    asked: Mapping[str, Any],
    tables: Sequence[Queried],
    gives: TableType,
    write: Callable[[Any], None],
) -> None:
    """Run one SELECT on tables of one server.

    Args:
        asked: ``sql``, ``settings``, ``seconds``, ``result``, and ``connected``, where it says
            that the server is there.
        tables: the tables.
        gives: the type of the result.
        write: takes it in parts, Arrow tables of that type.

    Raises:
        AdmissionError: the SQL is not allowed, or PostgreSQL would give another answer.
        KernelError: it exceeds a bound, or PostgreSQL fails on the data.
        SourceError: a table is not what its owner says.
    """
    import psycopg
    import pyarrow as pa  # type: ignore[import-untyped]
    from mplang_ibis.ext import Bounds, Offered, at_source, run_on_postgresql

    os.environ.setdefault("PGCONNECT_TIMEOUT", str(CONNECT_TIMEOUT))
    at_source.configure(asked["settings"])
    bounds = Bounds(asked["result"]["rows"], asked["result"]["size"], asked["seconds"])
    offered = {each.name: Offered(_kind(each), _parts(each)) for each in tables}
    with psycopg.connect(f"postgresql:{_url(tables[0])}", autocommit=True) as connection:
        give_up_calls()  # to connect to anything else
        tell_connected(asked["connected"])
        for each in tables:
            _check(lambda sql, kind: run_on_postgresql(connection, sql, offered, kind), each)
        for batch in run_on_postgresql(connection, asked["sql"], offered, gives, bounds):
            write(pa.Table.from_batches([batch]))


def _check(run: Callable[[str, TableType], Any], table: Queried) -> None:
    """Check what is published of the rows of a table."""
    kind = _kind(table)
    published = Published(table.opened.description, kind)
    columns, types = published.columns(), dict(kind.columns)
    if not columns:
        return
    names = [f"c{number}" for number in range(len(columns))]
    listed = ", ".join(
        f"{sql} AS {name}" for sql, name in zip(columns.values(), names, strict=True)
    )
    gives = TableType(
        tuple(
            (name, types[column] if what in ("low", "high") else "int64")
            for name, (what, column) in zip(names, columns, strict=True)
        )
    )
    (batch,) = run(f"SELECT {listed} FROM {quoted(table.name)}", gives)
    (row,) = batch.to_pylist()
    published.check(dict(zip(columns, row.values(), strict=True)))


def _url(table: Queried) -> str:
    return table.where.rpartition("#")[0]


def _parts(table: Queried) -> tuple[str, ...]:
    schema, _, name = table.where.rpartition("#")[2].rpartition(".")
    return (schema or "public", name)


def _kind(table: Queried) -> TableType:
    assert isinstance(table.kind, TableType)
    return table.kind

"""SQL over tables of PostgreSQL, in a process of its own that has the connection alone."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Sequence
from typing import Any

from mplang_confinement import give_up_calls
from mplang_tables.ext import quoted

from mplang_core import TableType
from mplang_data.apart import MAX_TOLD, database
from mplang_data.apart.child import Reach
from mplang_data.description import SourceError
from mplang_data.sources.source import Queried, SourceQuery

CONNECT_TIMEOUT = 30  # seconds
_IMPORTS = ("psycopg", "mplang_ibis.ext", "mplang_data.relations")

_NAMES = """
SELECT attname FROM pg_catalog.pg_attribute
WHERE attrelid = pg_catalog.to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


def prepare() -> None:
    """Do before a fork what each process needs: imports."""
    with contextlib.suppress(ImportError):  # tells whoever has such a source
        for module in _IMPORTS:
            importlib.import_module(module)


def access(tables: Sequence[Queried], size: int) -> Reach:
    """Return what a process reaches; see :meth:`mplang_data.Source.access`."""
    reached = database.reach_of_libpq(url_of(tables[0].where))
    return reached._replace(imports=_IMPORTS, written=size + MAX_TOLD)


def query(tables: Sequence[Queried], asked: SourceQuery) -> None:
    """Run one SELECT; see :meth:`mplang_data.Source.query`."""
    import psycopg
    import pyarrow as pa  # type: ignore[import-untyped]
    from mplang_ibis.ext import Bounds, Offered, UnfitTableError, run_on_postgresql

    from mplang_data.relations import Published

    os.environ.setdefault("PGCONNECT_TIMEOUT", str(CONNECT_TIMEOUT))
    bounds = Bounds(asked.rows, asked.size, asked.seconds)
    offered = {each.name: Offered(_kind(each), _parts(each)) for each in tables}
    with psycopg.connect(url_of(tables[0].where), autocommit=True) as connection:
        give_up_calls()  # to connect to anything else
        asked.connected()
        run = functools.partial(run_on_postgresql, connection, tables=offered)
        try:
            for each in tables:
                _check_match(connection, each)
                published = Published(each.opened.description, _kind(each))
                published.check_by(lambda sql, gives: run(sql, gives=gives), quoted(each.name))
            for batch in run(asked.sql, gives=asked.gives, bounds=bounds, ordered=asked.ordered):
                asked.write(pa.Table.from_batches([batch]))
        except UnfitTableError as error:
            raise SourceError(str(error)) from None


def url_of(where: str) -> str:
    """Return the URL of a server and an account, as libpq takes it."""
    return f"postgresql:{where.rpartition('#')[0]}"


def _check_match(connection: Any, table: Queried) -> None:
    from mplang_data.columns import check_there

    if table.match:
        name = ".".join(map(quoted, _parts(table)))
        names = [row[0] for row in connection.execute(_NAMES, [name])]
        if names:  # else there is no table, as the query says
            check_there(table.match, names)


def _parts(table: Queried) -> tuple[str, ...]:
    schema, _, name = table.where.rpartition("#")[2].rpartition(".")
    return (schema or "public", name)


def _kind(table: Queried) -> TableType:
    assert isinstance(table.kind, TableType)
    return table.kind

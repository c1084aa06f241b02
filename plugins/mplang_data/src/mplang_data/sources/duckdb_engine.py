"""SQL over files, DuckDB files and rows, which DuckDB runs in the process that reads them."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Sequence
from typing import Any

from mplang_core import BaseType, TableType
from mplang_data.apart import MAX_TOLD
from mplang_data.apart.child import Reach
from mplang_data.description import SourceError
from mplang_data.sources.source import Placed, Queried, Source, SourceQuery

_IMPORTS = (
    "mplang_data.columns", "mplang_data.relations", "mplang_tables.arrow", "pyarrow.csv",
    "pyarrow.dataset", "pyarrow.parquet",
)  # fmt: skip


class QueriedByDuckDb(Source):
    """Source over which DuckDB runs SQL."""

    def engine_key(self, data_set: Placed, kind: BaseType) -> str | None:
        """Return one key for all; see :class:`mplang_data.Source`."""
        return "duckdb"

    def prepare(self) -> None:
        """Import what reads files, and open a connection; see :class:`mplang_data.Source`."""
        _prepare()

    def access(self, tables: Sequence[Queried], size: int) -> Reach:
        """Return the files; see :class:`mplang_data.Source`."""
        return Reach(readable=_paths(tables), written=size + MAX_TOLD, imports=_IMPORTS)

    def query(self, tables: Sequence[Queried], asked: SourceQuery) -> None:
        """Run one SELECT; see :class:`mplang_data.Source`."""
        from mplang_ibis.ext import Bounds, at_source

        con = at_source.connect()
        at_source.leave(con, _paths(tables), asked.memory)
        for each in tables:
            _attach(con, each)
        bounds = Bounds(asked.rows, asked.size, asked.seconds)
        names = [each.name for each in tables]
        try:
            with at_source.reported(con, asked.progress):
                at_source.run(con, asked.sql, names, asked.gives, bounds, asked.write)
        except at_source.DamagedError as error:
            raise SourceError("it is damaged") from error


@functools.cache  # of all such kinds
def _prepare() -> None:
    for module in _IMPORTS:
        importlib.import_module(module)
    with contextlib.suppress(ImportError):  # without SQL, rows are read
        from mplang_ibis.ext import at_source

        at_source.prepare()


def _paths(tables: Sequence[Queried]) -> list[str]:
    opened = [(each.opened.source, each) for each in tables]
    return [path for source, each in opened for path in source.paths(each.where, each.opened.files)]


def _attach(con: Any, table: Queried) -> None:
    from mplang_ibis.ext import at_source

    from mplang_data.relations import View

    opened, kind = table.opened, table.kind
    if isinstance(kind, TableType):
        relation = opened.source.relation(con, table.where, opened.files, kind)
        if relation is not None:
            view = View(con, relation, opened.description, kind)
            misfit = view.misfit(table.match)
            if misfit is None:
                view.create(table.name)
                return
            if not opened.files:  # that could be read in another way
                raise misfit
    at_source.register(con, table.name, opened.read(kind))

"""Reader of data sets, in a process of its own: their rows, or what SQL over them gives.

It is asked for ``tables`` by their names in the SQL, each with ``kind`` and ``where`` of a source,
its ``description``, the ``type`` that is read, and the numbers of its ``files``. With ``sql`` it is
told the type that this ``gives``, ``settings`` of queries, ``seconds`` and ``result``; without, it
reads the rows of one table. It writes to its last file, one of Arrow, or of NumPy for an array.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mplang_core import TableType
from mplang_core.ext import (
    AdmissionError,
    KernelError,
    MPLangError,
    PluginLoadError,
    parse_base_type,
    plugin_manager,
)
from mplang_data import postgresql_reader
from mplang_data.apart import MAX_TOLD
from mplang_data.apart.child import Reach, Task
from mplang_data.description import Description, SourceError
from mplang_data.holding import Opened, Queried
from mplang_data.sources import GROUP, SqlSource, source_of

_IMPORTS = (
    "mplang_data.columns", "mplang_data.relations", "mplang_tables.arrow", "pyarrow.csv",
    "pyarrow.dataset", "pyarrow.parquet",
)  # fmt: skip


def prepare() -> None:
    """Do before a fork what each of these processes needs."""
    for module in _IMPORTS:
        importlib.import_module(module)
    for kind in plugin_manager.names(GROUP):
        with contextlib.suppress(PluginLoadError):  # tells whoever has such a source
            source_of(kind)
    with contextlib.suppress(ImportError):  # without SQL, rows are read
        from mplang_ibis.ext import at_source

        at_source.prepare()


def _tables(asked: Mapping[str, Any], files: Sequence[int]) -> list[Queried]:
    return [
        Queried(
            name,
            each["where"],
            Opened(
                source_of(each["kind"]),
                Description(**each["description"]),
                [files[i] for i in each["files"]],
                each["arguments"],
            ),
            parse_base_type(each["type"]),
        )
        for name, each in asked["tables"].items()
    ]


def _reach(asked: dict[str, Any], files: Sequence[int]) -> Reach:
    tables = _tables(asked, files)
    if _is_postgresql(tables):
        return postgresql_reader.reach(tables, asked["result"]["size"])
    paths = [path for each in tables for path in _paths(each)]
    return Reach(readable=paths, written=asked["result"]["size"] + MAX_TOLD, imports=_IMPORTS)


def _is_postgresql(tables: Sequence[Queried]) -> bool:
    """Return whether tables are PostgreSQL's, as all of a query are if one is."""
    return getattr(tables[0].opened.source, "engine", None) == "postgresql"


def _paths(table: Queried) -> list[str]:
    source = table.opened.source
    return source.paths(table.where, table.opened.files) if isinstance(source, SqlSource) else []


def work(asked: dict[str, Any], files: Sequence[int]) -> dict[str, Any]:
    """Write rows of a data set, or what SQL gives, to the last file.

    Returns:
        ``refused``, why the SQL may not run, for its coordinator; nothing if it did.

    Raises:
        SourceError: a source is not what its owner says, or the query fails.
    """
    *_, file = files
    tables = _tables(asked, files)
    if asked.get("sql") is None:
        _write(file, tables[0], asked["result"])
        return {}
    try:
        return _query(asked, tables, file)
    except AdmissionError as error:
        return {"refused": str(error)}
    except MPLangError as error:
        return {"failed": str(error)}


def _query(asked: Mapping[str, Any], tables: Sequence[Queried], file: int) -> dict[str, Any]:
    gives = parse_base_type(asked["gives"])
    assert isinstance(gives, TableType)
    if _is_postgresql(tables):
        with _writer(file, gives) as write:
            postgresql_reader.query(asked, tables, gives, write)
        return {}
    from mplang_ibis.ext import at_source

    at_source.configure(asked["settings"])
    con, result = at_source.connect(), asked["result"]
    names = [each.name for each in tables]
    at_source.leave(con, [path for each in tables for path in _paths(each)], asked["size"])
    for each in tables:
        _attach(con, each)
    bounds = at_source.QueryBounds(asked["size"], asked["seconds"], result["rows"], result["size"])
    with _writer(file, gives) as write:
        try:
            at_source.run(con, asked["sql"], names, gives, bounds, write)
        except at_source.DamagedError as error:
            raise SourceError("it is damaged") from error
    return {}


def _attach(con: Any, table: Queried) -> None:
    from mplang_ibis.ext import at_source

    from mplang_data.relations import View

    source, opened = table.opened.source, table.opened
    if isinstance(source, SqlSource) and isinstance(table.kind, TableType):
        relation = source.relation(con, table.where, opened.files, table.kind)
        if relation is not None:
            view = View(con, relation, opened.description, table.kind)
            misfit = view.misfit()
            if misfit is None:
                view.create(table.name)
                return
            if not opened.files:  # that could be read in another way
                raise misfit
    at_source.register(con, table.name, opened.read(table.kind))


def _write(file: int, table: Queried, result: Mapping[str, int]) -> None:
    """Write a whole data set, which whoever takes it compares with what its owner says."""
    import numpy as np
    from mplang_tables import arrow
    from mplang_tables.ext import Scan

    opened = table.opened
    value = opened.source.read(opened.files, table.kind, **opened.arguments)
    if isinstance(value, np.ndarray):
        with os.fdopen(os.dup(file), "wb") as sink:
            np.save(sink, value, allow_pickle=False)
        return
    parts, size = value.tables() if isinstance(value, Scan) else [value], 0
    with _writer(file, arrow.type_of(value.schema)) as write:
        try:
            for part in parts:
                size += part.nbytes
                if size > result["size"]:
                    why = f"it has more than {result['size']} bytes (size, in the catalogue)"
                    raise SourceError(why)
                write(part)
        except KernelError as error:  # of a scan
            raise SourceError("it is damaged") from error.__cause__


@contextmanager
def _writer(file: int, kind: TableType) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa  # type: ignore[import-untyped]
    from mplang_tables import arrow

    schema = arrow.schema(kind)
    with os.fdopen(os.dup(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer.write_table


TASK = Task(work, "it cannot be read", _reach)

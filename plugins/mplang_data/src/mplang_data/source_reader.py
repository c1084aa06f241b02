"""Reader of data sets, in a process of its own: their rows, or what SQL over them gives.

It is asked for ``tables`` by their names in the SQL, each with ``kind`` and ``where`` of a source,
its ``description``, the ``type`` that is read, columns to ``match``, and the numbers of its
``files``. With ``sql`` it is told the type that this ``gives``, ``settings`` of queries,
``seconds`` and ``result``; without, it reads one table, perhaps without ``rows``. It writes to its
last file, one of Arrow, or of NumPy for an array.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mplang_tables.ext import quoted

from mplang_core import TableType
from mplang_core.ext import AdmissionError, KernelError, MPLangError, parse_base_type
from mplang_data.apart.child import Reach, Task, tell_connected, tell_progress
from mplang_data.description import MAX_ROWS, Description, SourceError
from mplang_data.sources import source_of
from mplang_data.sources.source import Opened, Queried, SourceQuery

NAME = "whole"  # of a table that is read whole


def prepare(kinds: Iterable[str]) -> None:
    """Do before a fork what each of these processes needs that reads sources of some kinds."""
    for kind in kinds:
        with contextlib.suppress(Exception):  # of a plugin; it tells whoever has such a source
            source_of(kind).prepare()


def rehearse() -> None:
    """Run a query over a file of one row, in a process that waits for what it is asked.

    What a query touches is the process's own memory then, and no longer its parent's, which is
    copied page by page when it is first changed.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from mplang_ibis.ext import at_source

    columns = {"number": "double"}
    source, result = os.memfd_create("one"), os.memfd_create("result")
    try:
        with os.fdopen(os.dup(source), "wb") as file:
            pq.write_table(pa.table({"number": [1.0]}), file)
        table = {
            "kind": "parquet", "where": "", "files": [0], "arguments": {},
            "description": {"columns": columns}, "type": str(TableType(tuple(columns.items()))),
        }  # fmt: skip
        asked = {
            "tables": {NAME: table}, "result": {"rows": 1, "size": 1 << 20}, "size": 1 << 30,
            "gives": table["type"], "settings": {}, "seconds": 60, "line": result,
            "progress": result,
            "sql": f"SELECT sum(number) AS number FROM {NAME} WHERE number > 0",  # in one thread
        }  # fmt: skip
        _reach(asked, [source, result])
        work(asked, [source, result])
    finally:
        os.close(source)
        os.close(result)
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
            each.get("match", ()),
        )
        for name, each in asked["tables"].items()
    ]


def _reach(asked: dict[str, Any], files: Sequence[int]) -> Reach:
    tables = _tables(asked, files)
    return tables[0].opened.source.access(tables, asked["result"]["size"])


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
        (table,) = tables
        (_write if table.opened.files else _write_selected)(file, table, asked)
        return {}
    from mplang_ibis.ext import configure

    configure(asked["settings"])
    gives, result = parse_base_type(asked["gives"]), asked["result"]
    assert isinstance(gives, TableType)
    try:
        with _writer(file, gives) as write:
            query = SourceQuery(
                asked["sql"], gives, result["rows"], result["size"], asked["size"],
                asked["seconds"], partial(tell_connected, asked["line"]), write,
                progress=partial(tell_progress, asked["progress"]),
            )  # fmt: skip
            tables[0].opened.source.query(tables, query)
    except AdmissionError as error:
        return {"refused": str(error)}
    except MPLangError as error:
        return {"failed": str(error)}
    return {}


def _write_selected(file: int, table: Queried, asked: Mapping[str, Any]) -> None:
    """Write a whole table of a database, which whoever takes it compares with what is published."""
    kind = table.kind
    assert isinstance(kind, TableType)
    columns = ", ".join(quoted(name) for name, _ in kind.columns)
    sql = f"SELECT {columns} FROM {quoted(NAME)}" + " WHERE false" * (not asked.get("rows", True))
    bare = table.opened._replace(description=Description(columns=dict(kind.columns)))
    try:
        with _writer(file, kind) as write:
            query = SourceQuery(
                sql, kind, MAX_ROWS, sys.maxsize, asked["size"], asked["seconds"],
                partial(tell_connected, asked["line"]),
                _limited(write, asked["result"]["size"]), ordered=False,
            )  # fmt: skip
            bare.source.query([table._replace(name=NAME, opened=bare)], query)
    except MPLangError as error:
        raise SourceError("the database does not give it") from error


def _write(file: int, table: Queried, asked: Mapping[str, Any]) -> None:
    """Write a whole data set, which whoever takes it compares with what is published."""
    import numpy as np
    from mplang_tables import arrow
    from mplang_tables.ext import Scan

    opened = table.opened
    value = opened.source.read(opened.files, table.kind, **opened.arguments)
    if isinstance(value, np.ndarray):
        with os.fdopen(os.dup(file), "wb") as sink:
            np.save(sink, value, allow_pickle=False)
        return
    parts = value.tables() if isinstance(value, Scan) else [value]
    with _writer(file, arrow.type_of(value.schema)) as write:
        write = _limited(write, asked["result"]["size"])
        try:
            for part in parts:
                write(part)
        except KernelError as error:  # of a scan
            raise SourceError("it is damaged") from error.__cause__


def _limited(write: Callable[[Any], None], size: int) -> Callable[[Any], None]:
    """Return what takes parts of a table, and raises SourceError beyond a size in bytes."""
    left = size

    def take(part: Any) -> None:
        nonlocal left
        left -= part.nbytes
        if left < 0:
            raise SourceError(f"it has more than {size} bytes (size, in the catalogue)")
        write(part)

    return take


@contextmanager
def _writer(file: int, kind: TableType) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa
    from mplang_tables import arrow

    schema = arrow.schema(kind)
    with os.fdopen(os.dup(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer.write_table


TASK = Task(work, "it cannot be read", _reach)

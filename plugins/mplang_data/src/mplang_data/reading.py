"""Data sets that are read for a program: by confined processes, which open the sources.

Whoever runs a program has no path, no password and no open source. It gets rows in a memory file: a
data set as far as it is offered, or what SQL over data sets gives.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mplang_core import BaseType, TableType
from mplang_data.apart import Watch, unwatched
from mplang_data.apart.rows import read_apart
from mplang_data.description import NotOfferedError
from mplang_data.holding import DataSet
from mplang_data.sources import source_of
from mplang_data.sources.source import close_all

_KEY = secrets.token_bytes(16)


class Asked(NamedTuple):
    """Data set of a query.

    Attributes:
        data_set: the data set.
        kind: the columns that are read.
    """

    data_set: DataSet
    kind: BaseType


class Result(NamedTuple):
    """Result of reading.

    Attributes:
        file: descriptor of a file of Arrow, or of NumPy, that nobody can change; the caller closes
            it.
        versions: by data set what tells whether its source has changed, or ``None``.
    """

    file: int
    versions: Mapping[str, str | None]


def can_query(tables: Iterable[Asked]) -> bool:
    """Return whether SQL over data sets is run where they are, all of them by one engine."""
    keys = {source_of(each.kind).engine_key(each, kind) for each, kind in tables}
    return len(keys) == 1 and None not in keys


def read(asked: Asked, watch: Watch = unwatched) -> Result:
    """Read a data set, or some of its columns, by a confined process.

    Raises:
        NotOfferedError: it does not offer that.
        SourceError: its source is not there, or is damaged.
    """
    return _run({"": asked}, {}, asked.data_set.size, watch)


def query(
    tables: Mapping[str, Asked],
    sql: str,
    gives: TableType,
    settings: Mapping[str, Any],
    watch: Watch = unwatched,
) -> Result:
    """Run SQL over data sets by a confined process.

    Args:
        tables: the data sets by their names in the SQL.
        sql: one SELECT in the dialect of DuckDB; untrusted.
        gives: the type of its result.
        settings: limits of queries, as ``mplang_ibis`` takes them.
        watch: is given what ends the process.

    Raises:
        NotOfferedError: a data set does not offer that.
        AdmissionError: the SQL may not run.
        KernelError: the query fails.
        SourceError: a source does not hold what its owner says.
    """
    fields = {"sql": sql, "gives": str(gives), "settings": dict(settings)}
    return _run(tables, fields, min(each.data_set.size for each in tables.values()), watch)


def _run(tables: Mapping[str, Asked], fields: Mapping[str, Any], size: int, watch: Watch) -> Result:
    seconds = min(each.data_set.seconds for each in tables.values())
    rows = min(each.data_set.result_rows for each in tables.values())
    result = {"rows": rows, "size": size}
    connects = any(each.data_set.engine for each in tables.values())
    with _opened(tables) as (files, told, versions):
        request = {**fields, "result": result, "tables": told}
        file = read_apart(
            request, files, size=size, seconds=seconds, connects=connects, watch=watch
        )
        return Result(file, versions)


@contextlib.contextmanager
def _opened(
    tables: Mapping[str, Asked],
) -> Iterator[tuple[list[int], dict[str, Any], dict[str, str | None]]]:
    """Open what a process is to read: files, what it is told of them, and their versions."""
    files: list[int] = []
    told, versions = {}, {}
    try:
        for name, (data_set, kind) in tables.items():
            refused = data_set.refusal(kind)
            if refused:
                raise NotOfferedError(refused)
            source, where = source_of(data_set.kind), data_set.where
            opened = source.files(where, kind, size=data_set.size)
            numbers = range(len(files), len(files) + len(opened))
            files += opened
            versions[name] = _version(opened or source.paths(where, ()))
            told[name] = {
                "kind": data_set.kind, "where": where, "files": list(numbers),
                "description": data_set.public(), "type": str(kind),
                "arguments": dict(data_set.arguments),
            }  # fmt: skip
        yield files, told, versions
    finally:
        close_all(files)


def _version(files: Sequence[int | str]) -> str | None:
    """Return what differs after files have changed, and tells nothing else; none for no files."""
    seen = hashlib.blake2b(key=_KEY, digest_size=16)
    there = False
    for each in files:
        with contextlib.suppress(OSError):  # a log of a database that is not there
            found = os.stat(each)
            if not found.st_nlink:  # a memory file, which is another one each time
                continue
            there = True
            facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            seen.update(repr(facts).encode())
    return seen.hexdigest() if there else None

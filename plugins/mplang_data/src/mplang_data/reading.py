"""Data sets that are read for a program: by confined processes, which open the sources.

Whoever runs a program has no path, no password and no open source. It gets rows in a memory file: a
data set as far as it is offered, or what SQL over data sets gives.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mplang_core import BaseType, TableType
from mplang_core.ext import AdmissionError, KernelError
from mplang_data.apart import Watch, run_apart
from mplang_data.description import NotOfferedError, SourceError
from mplang_data.holding import DataSet
from mplang_data.sources import Source, SqlSource, source_of
from mplang_data.sources.files import close_all

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_KEY = secrets.token_bytes(16)
READER = "mplang_data.source_reader"


class Asked(NamedTuple):
    """Data set of a query.

    Attributes:
        data_set: the data set.
        kind: the columns that are read.
    """

    data_set: DataSet
    kind: BaseType


class Result(NamedTuple):
    """What was read.

    Attributes:
        file: descriptor of a file of Arrow, or of NumPy, that nobody can change; the caller closes
            it.
        versions: by data set what tells whether its source has changed, or ``None``.
    """

    file: int
    versions: Mapping[str, str | None]


def can_query(tables: Iterable[Asked]) -> bool:
    """Return whether SQL over data sets is run where they are, all of them by one engine."""
    engines = {_engine(*each) for each in tables}
    return len(engines) == 1 and None not in engines


def _engine(data_set: DataSet, kind: BaseType) -> str | None:
    """Return what runs SQL over a data set; ``None`` if it is to be read."""
    source = source_of(data_set.kind)
    if isinstance(source, SqlSource) or not getattr(source, "reads_when_opened", False):
        return "duckdb"
    floats = [type for _, type in getattr(kind, "columns", ()) if type in ("float", "double")]
    if data_set.engine != "postgresql" or (data_set.nan is not None and floats):
        return None  # NaN as a missing number is DuckDB's and Arrow's to read
    return f"{data_set.kind}:{data_set.where.rpartition('#')[0]}"  # one server, one account


def read(asked: Asked, watch: Watch) -> Result:
    """Read a data set, or some of its columns, by a confined process.

    Raises:
        NotOfferedError: it does not offer that.
        SourceError: its source is not there, or is damaged.
    """
    data_set, kind = asked
    source = source_of(data_set.kind)
    if not getattr(source, "reads_when_opened", False):
        return _run({"": asked}, {}, data_set.size, watch)
    refused = data_set.refusal(kind)
    if refused:
        raise NotOfferedError(refused)
    (file,) = source.open(data_set.where, kind, size=data_set.size)
    return Result(file, {})


def query(
    tables: Mapping[str, Asked],
    sql: str,
    gives: TableType,
    settings: Mapping[str, Any],
    watch: Watch,
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
    limits = {"seconds": seconds, "result": {"rows": rows, "size": size}}
    with _opened(tables) as (files, told, versions):
        file = os.memfd_create("mplang-data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            request = {**fields, **limits, "tables": told}
            answer = run_apart(
                READER, request, [*files, file], size=size, seconds=seconds + 5, watch=watch,
                connects=any(each.data_set.engine for each in tables.values()),
            )  # fmt: skip
            _check(answer)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
            # what is open for writing cannot be mapped once it is sealed
            return Result(os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC), versions)
        finally:
            os.close(file)


def _check(answer: Any) -> None:
    if not isinstance(answer, dict):  # a source may have taken the process over
        raise SourceError("it cannot be read: its process told nothing")
    if "refused" in answer:
        raise AdmissionError(str(answer["refused"])[:2000])
    if "failed" in answer:
        raise KernelError(str(answer["failed"])[:2000])


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
            source = source_of(data_set.kind)
            opened = _files(source, data_set, kind)
            numbers = range(len(files), len(files) + len(opened))
            files += opened
            paths = source.paths(data_set.where, ()) if isinstance(source, SqlSource) else ()
            versions[name] = _version(opened or paths)
            told[name] = {
                "kind": data_set.kind, "where": data_set.where, "files": list(numbers),
                "description": data_set.public(), "type": str(kind),
                "arguments": dict(data_set.arguments),
            }  # fmt: skip
        yield files, told, versions
    finally:
        close_all(files)


def _files(source: Source, data_set: DataSet, kind: BaseType) -> list[int]:
    """Return descriptors of the files that a process reads; none of what it connects to."""
    if isinstance(source, SqlSource):
        return source.files(data_set.where)
    if getattr(source, "reads_when_opened", False):
        return []
    return source.open(data_set.where, kind, size=data_set.size)


def _version(files: Sequence[int | str]) -> str | None:
    """Return what differs after files have changed, and tells nothing else; none for no files."""
    seen = hashlib.blake2b(key=_KEY, digest_size=16)
    there = False
    for each in files:
        with contextlib.suppress(OSError):  # a log of a database that is not there
            found = os.stat(each)
            there = True
            facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            seen.update(repr(facts).encode())
    return seen.hexdigest() if there else None

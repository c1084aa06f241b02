"""Check of data sets, each by a confined process.

A worker has them checked before it starts; a damaged source may end the process that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mplang_tables.ext import Scan

from mplang_core import TableType
from mplang_core.ext import KernelError
from mplang_data.apart import run_apart
from mplang_data.apart.child import Reach, Task
from mplang_data.description import Description, SourceError
from mplang_data.holding import DataSet
from mplang_data.sources import source_of
from mplang_data.sources.source import Opened, close_all

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

TOGETHER = 4  # processes


def check_data_sets(data_sets: Mapping[str, DataSet], *, whole: bool) -> dict[str, dict[str, Any]]:
    """Return for each data set its ``rows``, and its ``error``, as its owner may see it.

    Args:
        data_sets: the data sets, by name.
        whole: whether to read all rows, also of a source that tells its type without.
    """

    def one(data_set: DataSet) -> dict[str, Any]:
        try:
            return {"rows": check_data_set(data_set, whole=whole), "error": None}
        except Exception as error:  # one that is wrong hides no other
            wrong = str(error) if isinstance(error, SourceError) else type(error).__name__
            if error.__cause__ is not None:
                wrong += f": {' '.join(str(error.__cause__).split())[:500]}"
            return {"rows": None, "error": wrong}

    with ThreadPoolExecutor(TOGETHER) as pool:
        return dict(zip(data_sets, pool.map(one, data_sets.values()), strict=True))


def check_data_set(data_set: DataSet, *, whole: bool = True) -> int | None:
    """Compare a data set with its description, in a confined process.

    Args:
        data_set: the data set.
        whole: whether to read all rows, also of a source that tells its type without.

    Returns:
        Its number of rows; ``None`` for an array, and if it is not known.

    Raises:
        SourceError: it does not hold that.
    """
    source, size = source_of(data_set.kind), data_set.size
    files = source.open(data_set.where, data_set.type, list(data_set.match), rows=whole, size=size)
    try:
        asked = {"kind": data_set.kind, "description": data_set.public(), "whole": whole}
        asked["arguments"] = data_set.arguments
        rows = run_apart("mplang_data.check", asked, files, size=size, kinds=[data_set.kind])
    finally:
        close_all(files)
    if rows is not None and type(rows) is not int:  # its source may have taken it over
        raise SourceError("it cannot be read: its reader process sent no number of rows")
    return rows


def _reach(asked: dict[str, Any], files: Sequence[int]) -> Reach:
    source_of(asked["kind"])  # imports it
    return Reach(imports=["mplang_data.columns", "pyarrow.csv", "pyarrow.dataset"])


def _compare(asked: dict[str, Any], files: Sequence[int]) -> int | None:
    """Compare open files with a description; return the number of rows, if it is known."""
    source, description = source_of(asked["kind"]), Description(**asked["description"])
    arguments = asked.get("arguments", {})
    rows = source.probe(files, description.type, list(description.match), **arguments)
    if rows is not None:
        description.check_rows(rows)
    if not asked["whole"]:
        return rows
    kind = description.type
    if isinstance(kind, TableType):
        matched = [each for each in description.keys if each in description.match]
        kind = description.of(list(description.columns), matched)
    found = Opened(source, description, files, arguments).read(kind)
    parts = _parts(found) if isinstance(found, Scan) else [found]
    values: dict[str, set[object]] = {column: set() for column in description.keys}
    for part in parts:
        for column, seen in values.items():
            seen.update(part.column(column).unique().drop_null().to_pylist())
    for column, seen in values.items():
        description.check_keys(column, len(seen))
    return getattr(found, "num_rows", None)


def _parts(scan: Scan) -> Iterator[pa.Table]:
    """Yield the parts of a scan, and see that they are all."""
    count = 0
    try:
        for part in scan.tables():
            count += part.num_rows
            yield part
    except KernelError as error:
        if isinstance(error.__cause__, SourceError):
            raise error.__cause__ from None
        raise SourceError("it is damaged") from error.__cause__
    if count != scan.num_rows:
        raise SourceError("it does not have the rows that its head says")


TASK = Task(_compare, "it cannot be read", _reach)

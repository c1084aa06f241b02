"""Data sets of a party as kernels read them: in an engine, which asks its worker's front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from mplang_tables.ext import AtSource

from mplang_core import BaseType, TableType
from mplang_core.ext import AdmissionError, KernelError
from mplang_data.description import (
    Description,
    NoDataSetError,
    NotOfferedError,
    Ranges,
    SourceError,
    SourceUnreachableError,
)
from mplang_data.holding import DataSets, Facts, Opened
from mplang_data.questions import Ask
from mplang_data.refusals import explaining
from mplang_data.sources import source_of

_RAISED: Mapping[str, type[Exception]] = {
    "unknown": NoDataSetError,
    "refused": NotOfferedError,
    "inadmissible": AdmissionError,
    "broken": KernelError,
    "unreachable": SourceUnreachableError,
    "failed": SourceError,
}


class DataSetClient:
    """Data sets of a party in an engine, which asks the front; see :class:`DataSets`.

    Args:
        ask: asks the front.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def read(self, name: str, kind: BaseType, ranges: Ranges, *, perhaps: bool) -> Any:
        """Read a data set; wait for the front. See :class:`DataSets`."""
        asked = {"data": name, "type": str(kind), "ranges": list(ranges)}
        answer, files = self._asked("read", {"tables": {"": asked}, "perhaps": perhaps})
        source, description = source_of(answer["format"]), Description(**answer["description"])
        with closing(Opened(source, description, files)) as opened:
            return opened.read(kind)

    def query(self, sql: str, tables: Mapping[str, AtSource], gives: TableType, *, op: str) -> Any:
        """Run SQL on data sets where they are; see :class:`mplang_tables.ext.Place`."""
        asked = {
            name: {"data": each.name, "type": str(each.kind), "ranges": list(each.facts.ranges)}
            for name, each in tables.items()
        }
        perhaps = any(each.facts.perhaps for each in tables.values())
        args = {"tables": asked, "sql": sql, "gives": str(gives), "perhaps": perhaps}
        with explaining(sorted({each.name for each in tables.values()})):
            answer, files = self._asked("query", args)
            if "whole" in answer:
                return query_here(self, sql, tables, gives, op=op)
            return result_of(files, tables, answer["versions"], gives)

    def _asked(
        self, method: str, args: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Sequence[int]]:
        try:
            answer, files = self._ask(method, args, ())
        except OSError as error:
            raise SourceError(str(error)) from error
        for field, error_type in _RAISED.items():
            if field in answer:
                raise error_type(answer["told" if field == "unreachable" else field])
        return answer, files


def query_here(
    place: DataSets, sql: str, tables: Mapping[str, AtSource], gives: TableType, *, op: str
) -> Any:
    """Run SQL on data sets that are read whole, as their sources run none."""
    from mplang_ibis.ext import run_sql

    whole = {
        name: place.read(each.name, each.kind, each.facts.ranges, perhaps=each.facts.perhaps)
        for name, each in tables.items()
    }
    return run_sql(sql, whole, gives, op=op)


def result_of(
    files: Sequence[int],
    tables: Mapping[str, AtSource],
    versions: Mapping[str, str | None],
    gives: TableType,
) -> Any:
    """Return what a query gave.

    Args:
        files: descriptors of what it gave, which are closed.
        tables: the tables of the query by their names in the SQL.
        versions: by these names what tells whether the source has changed.
        gives: the type of the result.

    Raises:
        SourceError: a source has changed since another query of this run read the same table.
    """
    with closing(Opened(source_of("arrow"), Description(columns=dict(gives.columns)), files)) as it:
        for name, each in tables.items():
            facts = cast(Facts, each.facts)
            if facts.version not in (None, versions[name]):
                raise SourceError("it has changed since this run has read it before; run it again")
            each.facts = facts._replace(version=versions[name])
        return it.read(gives)

"""Data sets of a party as kernels read them: in an engine, which asks its worker's front."""

from __future__ import annotations

import threading
from collections import OrderedDict
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
from mplang_data.holding import DataSets, Facts
from mplang_data.questions import Ask
from mplang_data.refusals import explaining
from mplang_data.sources import source_of
from mplang_data.sources.source import Opened

RUNS = 64  # that are compared: an engine executes few at once
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
        self._versions = Versions()

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
            self._versions.check(tables, answer["versions"])
            return result_of(files, gives)

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


def result_of(files: Sequence[int], gives: TableType) -> Any:
    """Return what a query gave.

    Args:
        files: descriptors of what it gave, which are closed.
        gives: its type.
    """
    with closing(Opened(source_of("arrow"), Description(columns=dict(gives.columns)), files)) as it:
        return it.read(gives)


class Versions:
    """Versions of the sources that queries of a run saw: one for each source."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, dict[str, str | None]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, tables: Mapping[str, AtSource], versions: Mapping[str, str | None]) -> None:
        """Compare what a query saw with what others of its run did.

        Args:
            tables: the tables of the query by their names in the SQL.
            versions: by these names what differs after a source has changed; ``None`` if nothing
                tells that.

        Raises:
            SourceError: a source has changed.
        """
        with self._lock:
            for name, each in tables.items():
                seen = self._seen.setdefault(cast(Facts, each.facts).run, {})
                if seen.setdefault(each.name, versions[name]) != versions[name]:
                    raise SourceError(
                        "it has changed since this run has read it before; run it again"
                    )
            while len(self._seen) > RUNS:
                self._seen.popitem(last=False)

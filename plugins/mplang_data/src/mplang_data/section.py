"""Section ``data`` of a worker's configuration: data sets between its front and its engines.

Engines have no path and no password. One asks the front for a data set by its name, and is given
rows in a memory file if its coordinator is among the readers.
"""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mplang_analysis import DataQuestion, TableRead

from mplang_core import TableType
from mplang_core.ext import AdmissionError, ConfigError, KernelError, parse_base_type
from mplang_data.apart import Report, fork_ahead
from mplang_data.client import DataSetClient
from mplang_data.description import (
    NoDataSetError,
    NotOfferedError,
    SourceError,
    SourceUnreachableError,
    read_descriptions,
)
from mplang_data.holding import DataSet, offered, read_data_sets
from mplang_data.known import Catalogue
from mplang_data.questions import Answer, Ask, Asker
from mplang_data.reading import Asked, can_query, query, read
from mplang_data.sources import source_of
from mplang_data.stored.entry import read_entries

RELEASED = 1000  # sessions that are remembered: their questions may still wait for a thread
log = logging.getLogger("mplang.data")


class DataSection:
    """Data sets of a party, as a worker and a coordinator read them.

    It is a ``mplang_worker.ext.DataSection``, and the entry point ``data`` of ``mplang.sections``.
    """

    def read(self, fields: Any, folder: str) -> dict[str, Any]:
        """Return data sets by name, each with the fields of a :class:`DataSet`.

        Args:
            fields: the section.
            folder: the folder that paths are relative to.

        Raises:
            ConfigError: a name or a field is invalid.

        Example:
            >>> ages = {"source": "csv:ages.csv", "columns": {"age": "int64"}}
            >>> SECTION.read({"ages": ages}, "/srv")["ages"]["source"]
            'csv:/srv/ages.csv'
        """
        found = read_data_sets(fields, folder)
        return {name: each.model_dump(mode="json") for name, each in found.items()}

    def front(self, fields: Any, worker: Mapping[str, Any]) -> DataSetServer:
        """Return what serves the data sets to engines.

        Args:
            fields: the section, as :meth:`read` returns it.
            worker: the worker's configuration, as plain data.
        """
        fork_ahead()
        plugin = (worker.get("plugins") or {}).get("mplang-ibis") or {}
        gated = bool(worker.get("gate"))
        return DataSetServer(read_data_sets(fields, "/"), plugin.get("settings") or {}, gated=gated)

    def engine(self, ask: Ask) -> DataSetClient:
        """Return the data sets, as kernels of an engine open them.

        Args:
            ask: asks the front.
        """
        return DataSetClient(ask)

    def catalogue(self, parties: Mapping[str, tuple[Any, Any]]) -> Catalogue:
        """Return what a coordinator knows of the parties' data sets and stored values.

        Args:
            parties: by name the descriptions of data sets and the entries of stored values, as
                the party's worker tells them; untrusted.

        Raises:
            ConfigError: they are malformed; names the party.
        """
        data, stored = {}, {}
        for name, (descriptions, values) in parties.items():
            try:
                data[name] = read_descriptions(descriptions, newer=True)
                entries = read_entries(values)
            except (ConfigError, LookupError, TypeError, ValueError) as error:
                raise ConfigError(
                    f"{name} sent no catalogue of data sets: {error}", code="C008"
                ) from None
            stored[name] = {key: (each.nest, each.kinds) for key, each in entries.items()}
        return Catalogue(data, stored)


class DataSetServer:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        data_sets: the data sets by name.
        settings: limits of queries, as ``mplang_ibis`` takes them.
        gated: whether a gate decides what is made of their columns.
    """

    def __init__(
        self, data_sets: Mapping[str, DataSet], settings: Mapping[str, Any], *, gated: bool = False
    ) -> None:
        self._sets, self._gated = data_sets, gated
        self._settings = settings
        self._released = OrderedDict[str, None]()  # names of sessions
        self._ends: dict[str, set[Callable[[], None]]] = {}  # of processes, by session

    def check(self) -> None:
        """Compare the data sets with their sources, in confined processes.

        Raises:
            ConfigError: a source is not there, or does not hold what the configuration says.
        """
        _check(self._sets)

    def reload(self, fields: object, worker: Mapping[str, object]) -> Callable[[], None]:
        """Return what makes changed data sets count; those that are new or others are checked.

        Args:
            fields: the section, as :meth:`DataSection.read` returns it.
            worker: the worker's configuration, as plain data.

        Raises:
            ConfigError: a source is not there, or does not hold what the configuration says.
        """
        after = read_data_sets(fields, "/")
        _check({name: each for name, each in after.items() if self._is_other(name, each)})

        def commit() -> None:
            self._sets = after

        return commit

    def _is_other(self, name: str, after: DataSet) -> bool:
        """Return whether a data set is new, or differs in more than who reads it."""
        before = self._sets.get(name)
        return before is None or before != after.model_copy(update={"readers": before.readers})

    def missing(self) -> dict[str, str]:
        """Return the data sets whose source cannot be reached now, and why, for the owner."""
        unreachable = {}
        for name, each in self._sets.items():
            reach = getattr(source_of(each.kind), "reach", None)
            try:
                if reach is not None:
                    reach(each.where)
            except SourceError as error:
                unreachable[f"data set {name}"] = f"{error}: {error.__cause__}"
        return unreachable

    def descriptions(self, coordinator: str) -> dict[str, Any]:
        """Return descriptions of the data sets that a coordinator may read, by name."""
        return {
            name: each.public() for name, each in self._sets.items() if coordinator in each.readers
        }

    def question(self, method: str, args: Mapping[str, Any]) -> DataQuestion:
        """Return what an engine asks, as analyses tell it of programs.

        Args:
            method: ``read``, or ``query``.
            args: arguments of the question; untrusted.
        """
        tables = {
            str(name): TableRead(str(each["data"]), str(each["type"]), list(each["ranges"]))
            for name, each in _tables(args).items()
        }
        if method != "query":
            (table,) = tables.values()
            return DataQuestion({"": table})
        return DataQuestion(tables, str(args["sql"]), str(args["gives"]))

    def answer(
        self, asker: Asker, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Return what an engine is told of a data set, and its open files.

        Args:
            asker: its session.
            method: ``read``, or ``query``.
            args: what is read, and perhaps the SQL; untrusted.
            files: none.
        """
        names = ", ".join(sorted(_names(args)))
        try:
            return self._answer(asker, method, args)
        except NoDataSetError as error:
            log.warning("%s is not a reader of a data set %r", asker.coordinator, str(error))
            return {"unknown": str(error)}, (), None
        except NotOfferedError as error:
            return {"refused": str(error)}, (), None
        except AdmissionError as error:
            return {"inadmissible": str(error)}, (), None
        except KernelError as error:
            log.error("a query of data set %s fails: %s", names, error)
            return {"broken": str(error)}, (), None
        except SourceUnreachableError as error:
            log.error("data set %s cannot be reached: %s", names, error.__cause__ or error)
            return {"told": str(error), "unreachable": True}, (), None
        except SourceError as error:
            log.error("data set %s cannot be read: %s: %s", names, error, error.__cause__)
            return {"failed": str(error)}, (), None
        except Exception as error:  # of a plugin; its text may have a password
            log.error("data set %s cannot be read: %s", names, type(error).__name__)
            return {"failed": "its source cannot be opened"}, (), None

    def _answer(self, asker: Asker, method: str, args: Mapping[str, Any]) -> Answer:
        sets, watch = self._sets, partial(self._watched, asker, sorted(_names(args)))
        question = self.question(method, args)
        tables = {}
        for name, each in question.tables.items():
            kind, ranges = parse_base_type(each.type), tuple(each.ranges)
            there = offered(sets, each.data, kind, ranges, asker.coordinator, matches=self._gated)
            tables[name] = Asked(there, kind)
        if method == "query" and not can_query(tables.values()):
            return {"whole": True}, (), None
        log.info("%s reads data set %s", asker.coordinator, ", ".join(sorted(_names(args))))
        if method == "query":
            gives = parse_base_type(question.gives)
            assert isinstance(gives, TableType)
            result = query(tables, question.sql, gives, self._settings, watch)
            return {"versions": dict(result.versions)}, (result.file,), None
        (asked,) = tables.values()
        result = read(asked, watch)
        fields = {
            "format": "arrow" if isinstance(asked.kind, TableType) else "npy",
            "description": asked.data_set.public(),
            "versions": dict(result.versions),
        }
        return fields, (result.file,), None

    @contextlib.contextmanager
    def _watched(
        self, asker: Asker, names: Sequence[str], end: Callable[[], None]
    ) -> Iterator[Report]:
        """End a process if its session is released inside of ``with``, or has been.

        How far it is depends on private data, as does how long it takes: the owner's log has it,
        and no engine.
        """

        def report(seconds: float, percent: float | None) -> None:
            done = "" if percent is None else f", {percent:.0f} % done"
            log.info(
                "%s reads data set %s for %.0f s now%s", asker.coordinator, ", ".join(names),
                seconds, done,
            )  # fmt: skip

        ends = self._ends.setdefault(asker.session, set())
        ends.add(end)
        try:
            if asker.session in self._released:
                end()
            yield report
        finally:
            ends.discard(end)
            if asker.session in self._released:
                self._ends.pop(asker.session, None)

    def release(self, session: str) -> None:
        """End what reads data sets for a session, and what a thread of it is about to begin."""
        self._released[session] = None
        while len(self._released) > RELEASED:
            self._released.popitem(last=False)
        for end in list(self._ends.pop(session, ())):
            end()


def _check(data_sets: Mapping[str, DataSet]) -> None:
    from mplang_data.check import check_data_sets  # it is seldom needed

    found = check_data_sets(data_sets, whole=False)
    wrong = [f"field 'data.{n}': {each['error']}" for n, each in found.items() if each["error"]]
    if wrong:
        raise ConfigError("\n".join(wrong), code="C008")


def _tables(args: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return what a question reads, by the names in its SQL; untrusted."""
    tables: Mapping[str, Mapping[str, Any]] = args["tables"]
    return tables


def _names(args: Mapping[str, Any]) -> set[str]:
    return {str(each["data"]) for each in _tables(args).values()}


SECTION = DataSection()

"""Section ``data`` of a worker's configuration: data sets between its front and its engines.

Engines have no path and no password. One asks the front for a data set by its name, and is given
open files if its coordinator is among the readers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mplang_core import BaseType
from mplang_core.ext import ConfigError, parse_base_type
from mplang_data.description import (
    Description,
    NoDataSetError,
    NotOfferedError,
    SourceError,
    SourceUnreachableError,
    columns_read,
    read_descriptions,
)
from mplang_data.holding import DataSet, Opened, open_for, read_data_sets
from mplang_data.known import Catalogue
from mplang_data.questions import Answer, Ask, Asker
from mplang_data.sources import source_of
from mplang_data.stored.entry import read_entries

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
        return DataSetServer(read_data_sets(fields, "/"))

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
                raise ConfigError(f"{name} tells no catalogue of data sets: {error}") from None
            stored[name] = {key: (each.nest, each.kinds) for key, each in entries.items()}
        return Catalogue(data, stored)


class DataSetServer:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        data_sets: the data sets by name.
    """

    def __init__(self, data_sets: Mapping[str, DataSet]) -> None:
        self._sets = data_sets

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

    def columns(self, args: Mapping[str, Any]) -> frozenset[str]:
        """Return what a question reads, as disclosure tables name it.

        Args:
            args: arguments of the question; untrusted.
        """
        return frozenset(columns_read(*_read(args)))

    def answer(
        self, asker: Asker, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Return what an engine is told of a data set, and its open files.

        Args:
            asker: its session.
            method: ``read``.
            args: name and type; untrusted.
            files: none.
        """
        (name, kind), coordinator, sets = _read(args), asker.coordinator, self._sets
        try:
            opened = open_for(sets, name, kind, coordinator)
        except NoDataSetError:
            log.warning("%s is no reader of a data set %r", coordinator, name)
            return {"unknown": True}, (), None
        except NotOfferedError as error:
            return {"refused": str(error)}, (), None
        except SourceUnreachableError as error:
            log.error("data set %s cannot be reached: %s", name, error.__cause__ or error)
            return {"failed": str(error), "unreachable": True}, (), None
        except SourceError as error:
            log.error("data set %s cannot be read: %s: %s", name, error, error.__cause__)
            return {"failed": str(error)}, (), None
        except Exception as error:  # of a plugin; its text may have a password
            log.error("data set %s cannot be read: %s", name, type(error).__name__)
            return {"failed": "its source cannot be opened"}, (), None
        log.info("%s reads data set %s", coordinator, name)
        data_set = sets[name]
        fields = {"kind": data_set.kind, "description": data_set.public()}
        fields["arguments"] = data_set.arguments
        return fields, opened.files, None

    def release(self, session: str) -> None:
        """Do nothing: a session holds nothing here."""


class DataSetClient:
    """Data sets of a party in an engine, which asks the front; see :class:`DataSets`.

    Args:
        ask: asks the front.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def open_perhaps(self, name: str, kind: BaseType) -> AbstractContextManager[Opened]:
        """Open a data set as :meth:`open` does, where private data may decide whether it is read.

        Then that its source cannot be reached is no excuse: it would tell of that data.
        """
        return self.open(name, kind, perhaps=True)

    @contextlib.contextmanager
    def open(self, name: str, kind: BaseType, *, perhaps: bool = False) -> Iterator[Opened]:
        """Open a data set inside of ``with``; wait for the front.

        Args:
            name: its name.
            kind: the type that is read.
            perhaps: whether private data may decide that it is read.

        Raises:
            NoDataSetError: there is none of that name that the coordinator may read.
            NotOfferedError: it does not offer that.
            SourceError: its source is not there.
        """
        try:
            args = {"name": name, "type": str(kind), "perhaps": perhaps}
            answer, files = self._ask("read", args, ())
        except OSError as error:
            raise SourceError(str(error)) from error
        if "unknown" in answer:
            raise NoDataSetError(name)
        if "refused" in answer:
            raise NotOfferedError(answer["refused"])
        if "unreachable" in answer:
            raise SourceUnreachableError(answer["failed"])
        if "failed" in answer:
            raise SourceError(answer["failed"])
        source, description = source_of(answer["kind"]), Description(**answer["description"])
        opened = Opened(source, description, files, answer["arguments"])
        try:
            yield opened
        finally:
            opened.close()


def _check(data_sets: Mapping[str, DataSet]) -> None:
    from mplang_data.check import check_data_sets  # it is seldom needed

    found = check_data_sets(data_sets, whole=False)
    wrong = [f"field 'data.{n}': {each['error']}" for n, each in found.items() if each["error"]]
    if wrong:
        raise ConfigError("\n".join(wrong))


def _read(args: Mapping[str, Any]) -> tuple[str, BaseType]:
    return str(args["name"]), parse_base_type(str(args["type"]))


SECTION = DataSection()

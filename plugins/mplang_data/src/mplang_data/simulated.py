"""Data sets of a simulator: frames, arrays, files and catalogues, by party and by name."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, cast

import numpy as np
from mplang_tables.ext import AtSource

from mplang_core import BaseType, TableType, TensorType
from mplang_core.ext import ConfigError, array_of, type_of
from mplang_data import reading
from mplang_data.client import Versions, query_here, result_of
from mplang_data.description import Description, NoDataSetError, NotOfferedError, Ranges, check_name
from mplang_data.holding import DataSet
from mplang_data.known import Catalogue
from mplang_data.refusals import explaining
from mplang_data.sources import engines as known_engines, source_of, source_of_path
from mplang_data.sources.source import Opened, checked
from mplang_data.stored import Storage

log = logging.getLogger("mplang.data")


class Described(NamedTuple):
    """A value in memory with a description of its own, such as one that has ranges.

    Attributes:
        description: what is told of it.
        value: an Arrow table, or an array.
    """

    description: Description
    value: Any


class HeldData:
    """Data sets of a party of a simulator; see :class:`mplang_data.DataSets`.

    Args:
        data_sets: the data sets by name: those of a catalogue, and values in memory.

    Attributes:
        stored: the storage of the party; ``None`` until a program uses it.
    """

    def __init__(self, data_sets: Mapping[str, DataSet | Described]) -> None:
        self._sets = data_sets
        self._versions = Versions()
        self.stored: Storage | None = None

    def read(self, name: str, kind: BaseType, ranges: Ranges, *, perhaps: bool) -> Any:
        """Read a data set; see :class:`mplang_data.DataSets`."""
        there, description = self._offered(name, kind, ranges)
        if isinstance(there, Described):
            return checked(_part(there.value, kind), kind, description)
        file = reading.read(reading.Asked(there, kind)).file
        source = source_of("arrow" if isinstance(kind, TableType) else "npy")
        with closing(Opened(source, description, [file])) as opened:
            return opened.read(kind)

    def query(self, sql: str, tables: Mapping[str, AtSource], gives: TableType, *, op: str) -> Any:
        """Run SQL on data sets where they are; see :class:`mplang_tables.ext.Place`."""
        asked = {}
        with explaining(sorted({each.name for each in tables.values()})):
            for name, each in tables.items():
                there, _ = self._offered(each.name, each.kind, each.facts.ranges)
                if isinstance(there, Described):
                    return query_here(self, sql, tables, gives, op=op)
                asked[name] = reading.Asked(there, each.kind)
            if not reading.can_query(asked.values()):
                return query_here(self, sql, tables, gives, op=op)
            result = reading.query(asked, sql, gives, {})
            self._versions.check(tables, result.versions)
            return result_of([result.file], gives)

    def _offered(
        self, name: str, kind: BaseType, ranges: Ranges
    ) -> tuple[DataSet | Described, Description]:
        there = self._sets.get(name)
        if there is None:
            raise NoDataSetError(name)
        description = there.description
        refused = description.refusal(kind) or description.range_refusal(kind, ranges)
        if refused:
            raise NotOfferedError(refused)
        return there, description


def _part(value: Any, kind: BaseType) -> Any:
    """Return a value in memory, with the columns of a type."""
    if isinstance(value, np.ndarray):
        return value
    return value.select([name for name, _ in cast(TableType, kind).columns])


def simulated(
    data: Mapping[str, Mapping[str, Any]],
    names: Sequence[str],
    engines: Mapping[str, str] | None = None,
) -> tuple[Catalogue, Sequence[HeldData]]:
    """Return the catalogue of a simulator, and the data sets of its parties.

    Args:
        data: by party and by name a frame of pandas or polars, an Arrow table, columns by name, an
            array, the path of a file, or the fields of a :class:`DataSet`, as in a worker's
            configuration. Of a frame, an array and a path, all is offered.
        names: the names of the parties, by rank.
        engines: by party the engine that its worker has, such as ``"postgresql"``. What runs is
            DuckDB; what that engine would answer in another way is refused while compiling.

    Raises:
        ConfigError: there is no such party or engine, or a data set is invalid.
    """
    chosen = _engines(engines or {}, names)
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"data: expected data sets by party and by name, got a {type(data).__name__}",
            code="C008",
        )
    unknown = sorted(set(data) - set(names))
    if unknown:
        raise ConfigError(
            f"data names {unknown[0]!r}; the parties are {', '.join(names)}", code="C008"
        )
    held: dict[str, dict[str, DataSet | Described]] = {}
    catalogue: dict[str, dict[str, Description]] = {}
    for party, each in data.items():
        if not isinstance(each, Mapping):
            raise ConfigError(
                f"data of {party}: expected data sets by name, {{'people': frame}}, got a "
                f"{type(each).__name__}",
                code="C008",
            )
        for name, given in each.items():
            try:
                made = _data_set(given)
                check_name(name)
            except (ConfigError, TypeError, ValueError) as error:
                raise ConfigError(f"data set {name!r} of {party}: {error}", code="C008") from None
            held.setdefault(party, {})[name] = made
            described = made.description
            if party in chosen:
                described = described.model_copy(update={"engine": chosen[party]})
            catalogue.setdefault(party, {})[name] = described
    return Catalogue(catalogue), [HeldData(held.get(name, {})) for name in names]


def _engines(chosen: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str | None]:
    known = ["duckdb", *known_engines()]
    for party, engine in chosen.items():
        if party not in names:
            raise ConfigError(
                f"engines names {party!r}; the parties are {', '.join(names)}", code="C008"
            )
        if engine not in known:
            raise ConfigError(
                f"no engine {engine!r} of {party}; there are {', '.join(known)}", code="C008"
            )
    return {party: None if each == "duckdb" else each for party, each in chosen.items()}


def _data_set(given: Any) -> DataSet | Described:
    if isinstance(given, str | os.PathLike):
        given = _of_path(os.fspath(given))
    elif isinstance(given, Mapping) and any(isinstance(each, str) for each in given.values()):
        given = DataSet(**given)  # columns are lists
    if isinstance(given, DataSet):
        return given.at(os.getcwd())
    if isinstance(given, Described):
        return given
    value = _array(given) if isinstance(given, np.ndarray) else _table(given)
    return Described(_description(value), value)


def _array(given: np.ndarray[Any, Any]) -> Any:
    return np.array(array_of(given))  # no later change of it reaches the copy


def _table(given: Any) -> Any:
    from mplang_tables import arrow

    return arrow.normalize(given)


def _description(value: Any) -> Description:
    kind = type_of(value)
    if isinstance(kind, TensorType):
        return Description(array=str(kind))
    return Description(columns=dict(cast(TableType, kind).columns), rows=value.num_rows)


def _of_path(path: str) -> DataSet:
    """Return the data set of a file, all of which is offered."""
    from mplang_data.schema import propose

    data_set, _, doubts = propose(source_of_path(path), os.getcwd())
    for doubt in doubts:
        log.warning("%s is read as its catalogue may not mean it: %s", path, doubt)
    return data_set

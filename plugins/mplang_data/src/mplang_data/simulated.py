"""Data sets of a simulator: frames, arrays, files and catalogues, by party and by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from mplang_core import BaseType, TableType, TensorType
from mplang_core.ext import ConfigError, array_of, plugin_manager, type_of
from mplang_data.description import SIZE, Description, NoDataSetError, NotOfferedError, check_name
from mplang_data.holding import DataSet, Opened
from mplang_data.known import Catalogue
from mplang_data.sources import GROUP, engines as known_engines
from mplang_data.stored import Storage

Opener: TypeAlias = Callable[[BaseType], Opened]

_KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
}


class Described(NamedTuple):
    """A value in memory with a description of its own, such as one that has ranges.

    Attributes:
        description: what is told of it.
        value: an Arrow table, or an array.
    """

    description: Description
    value: Any


class Held:
    """Source of a value in memory; see :class:`mplang_data.Source`.

    Args:
        value: an Arrow table, or an array.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def place(self, where: str, folder: str) -> str:
        """Return it as it is: there is none."""
        return where

    def probe(self, files: Sequence[int], kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Return nothing: it is what it is."""
        return None

    def open(
        self,
        where: str,
        kind: BaseType,
        match: Sequence[str] = (),
        *,
        rows: bool = True,
        size: int = SIZE,
    ) -> list[int]:
        """Return no files."""
        return []

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Return it, with the columns of a type."""
        if isinstance(self._value, np.ndarray):
            return self._value
        return self._value.select([name for name, _ in cast(TableType, kind).columns])


class HeldData:
    """Data sets of a party of a simulator; see :class:`mplang_data.DataSets`.

    Args:
        openers: functions that open them, by name.

    Attributes:
        stored: the storage of the party; ``None`` until a program uses it.
    """

    def __init__(self, openers: Mapping[str, Opener]) -> None:
        self._openers = openers
        self.stored: Storage | None = None

    @contextmanager
    def open(self, name: str, kind: BaseType) -> Iterator[Opened]:
        """Open a data set inside of ``with``."""
        if name not in self._openers:
            raise NoDataSetError(name)
        opened = self._openers[name](kind)
        try:
            yield opened
        finally:
            opened.close()


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
        raise ConfigError(f"data: expected data sets by party and by name, got {data!r:.80}")
    unknown = sorted(set(data) - set(names))
    if unknown:
        raise ConfigError(f"data names {unknown[0]!r}; the parties are {', '.join(names)}")
    held: dict[str, dict[str, Opener]] = {}
    catalogue: dict[str, dict[str, Description]] = {}
    for party, each in data.items():
        if not isinstance(each, Mapping):
            raise ConfigError(f"data of {party}: expected data sets by name, got {each!r:.80}")
        for name, given in each.items():
            try:
                described, opener = _opener(given)
                check_name(name)
            except (ConfigError, TypeError, ValueError) as error:
                raise ConfigError(f"data set {name!r} of {party}: {error}") from None
            held.setdefault(party, {})[name] = opener
            if party in chosen:
                described = described.model_copy(update={"engine": chosen[party]})
            catalogue.setdefault(party, {})[name] = described
    return Catalogue(catalogue), [HeldData(held.get(name, {})) for name in names]


def _engines(chosen: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str | None]:
    known = ["duckdb", *known_engines()]
    for party, engine in chosen.items():
        if party not in names:
            raise ConfigError(f"engines names {party!r}; the parties are {', '.join(names)}")
        if engine not in known:
            raise ConfigError(f"no engine {engine!r} of {party}; there are {', '.join(known)}")
    return {party: None if each == "duckdb" else each for party, each in chosen.items()}


def _opener(given: Any) -> tuple[Description, Opener]:
    if isinstance(given, str | os.PathLike):
        given = _of_path(os.fspath(given))
    elif isinstance(given, Mapping) and "source" in given and isinstance(given["source"], str):
        given = DataSet(**given)
    if isinstance(given, DataSet):
        made = given.at(os.getcwd())
        return made.description, made.open
    if isinstance(given, Described):
        description, value = given
    else:
        value = _array(given) if isinstance(given, np.ndarray) else _table(given)
        description = _description(value)

    def opener(kind: BaseType) -> Opened:
        refused = description.refusal(kind)
        if refused:
            raise NotOfferedError(refused)
        return Opened(Held(value), description, [])

    return description, opener


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
    kind, _, where = path.partition(":")
    if not where or kind not in plugin_manager.names(GROUP):
        kind, where = _KINDS.get(os.path.splitext(path)[1].lower(), ""), path
    if not kind:
        raise ConfigError(f"the kind of the file {path} is not known; name it, as parquet:{path}")
    from mplang_data.schema import schema_of

    return schema_of(f"{kind}:{where}", os.getcwd())

"""Kinds of sources that data sets are read from; an extension point. Imports no Arrow.

A package adds one by an entry point of the group ``mplang.sources``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mplang_core import BaseType, TableType
from mplang_core.ext import ConfigError, plugin_manager
from mplang_data.description import SIZE

GROUP = "mplang.sources"
_KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
}


class Source(Protocol):
    """Kind of source, such as Parquet files.

    It is opened by the owner's process, which decides who reads what, and has all that the owner
    has: so opening looks at nothing that is in the source. It is probed and read by confined
    processes, as those are that run programs: they have the open files only, no path, no password.

    Where a data set has options, such as ``csv``, its source is probed and read with a keyword
    argument ``options``, too, which has them as plain data.

    A source whose rows are in a database has an attribute ``engine``: its name, by which catalogues
    publish where SQL runs. A source may have a method ``reach(where)``, too, which raises
    :class:`SourceError` if it is not there now, and reads nothing of it: a worker calls it every
    half minute, for ``/ready``.
    """

    def place(self, where: str, folder: str) -> str:
        """Return a place that does not depend on the working directory.

        Args:
            where: what follows the kind in the catalogue, such as a path.
            folder: the folder of the file that names it.

        Raises:
            SourceError: it is no such place.
        """

    def open(
        self,
        where: str,
        kind: BaseType,
        match: Sequence[str] = (),
        *,
        rows: bool = True,
        size: int = SIZE,
    ) -> list[int]:
        """Open a source.

        Args:
            where: the place, as :meth:`place` returns it.
            kind: the type that is read: a source may open that part only.
            match: columns that are looked for, too, of whatever type, and not read.
            rows: whether rows are read; else it is opened to be probed.
            size: bytes that it may have in memory.

        Returns:
            Descriptors of open files; the caller closes them.

        Raises:
            SourceError: there is none.
        """

    def probe(self, files: Sequence[int], kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Compare an open source with a type, without its rows if it can.

        Args:
            files: descriptors of open files; the caller closes them.
            kind: the type.
            match: columns that are there, too, of whatever type, unless :meth:`open` has looked.

        Returns:
            The number of rows; ``None`` if it is not known without reading them.

        Raises:
            SourceError: the source is of another type, or is damaged.
        """

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read a source.

        Args:
            files: descriptors of open files; the caller closes them.
            kind: the type to read, of a table or an array: columns that are not in it are not read.

        Returns:
            A value of that type: a ``pyarrow.Table``, a :class:`mplang_tables.scan.Scan` or an
            array.

        Raises:
            SourceError: the source is of another type, or is damaged.
        """


@runtime_checkable
class SqlSource(Protocol):
    """Kind of source that DuckDB reads by itself, in a confined process; a :class:`Source`, too.

    SQL over other kinds is run on what :meth:`Source.read` returns.
    """

    def paths(self, where: str, files: Sequence[int]) -> list[str]:
        """Return the paths of the files that DuckDB reads, and no others.

        Args:
            where: the place, as :meth:`Source.place` returns it.
            files: descriptors of open files, which :meth:`files` has opened.
        """

    def files(self, where: str) -> list[int]:
        """Return descriptors of open files, which the caller closes; none if it is read by path.

        Raises:
            SourceError: there are none.
        """

    def relation(self, con: Any, where: str, files: Sequence[int], kind: TableType) -> str | None:
        """Return what SQL selects from, once a connection knows the source.

        Args:
            con: the connection, which reads the paths of its sources alone.
            where: the place.
            files: descriptors of its open files.
            kind: the columns that are read.

        Returns:
            What stands after ``FROM``; ``None`` if it is read by :meth:`Source.read`.

        Raises:
            SourceError: the source is not what its owner says, or would read others.
        """


def source_of(kind: str) -> Source:
    """Return a kind of source by its name.

    Raises:
        ConfigError: there is none of that name.
        PluginLoadError: its package does not load.

    Example:
        >>> type(source_of("parquet")).__name__
        'ParquetFiles'
    """
    found = plugin_manager.entry(GROUP, kind)
    if found is None:
        known = ", ".join(plugin_manager.names(GROUP))
        raise ConfigError(f"no kind of source {kind[:80]!r} is installed; there are {known}")
    made: Source = found()
    return made


def source_of_path(path: str) -> str:
    """Return the source of a file, by the ending of its name unless its kind stands before it.

    Raises:
        ConfigError: the kind is not known.

    Example:
        >>> source_of_path("people.csv"), source_of_path("csv:people.dat")
        ('csv:people.csv', 'csv:people.dat')
    """
    kind, _, where = path.partition(":")
    if where and kind in plugin_manager.names(GROUP):
        return path
    kind = _KINDS.get(os.path.splitext(path)[1].lower(), "")
    if not kind:
        raise ConfigError(f"the kind of the file {path} is not known; name it, as parquet:{path}")
    return f"{kind}:{path}"


def engine_of(kind: str) -> str | None:
    """Return the engine in which SQL over a kind of source runs; ``None`` for DuckDB.

    Example:
        >>> engine_of("parquet"), engine_of("postgresql")
        (None, 'postgresql')
    """
    engine: str | None = getattr(source_of(kind), "engine", None)
    return engine


def engines() -> list[str]:
    """Return the engines of the kinds of sources that are installed, beside DuckDB."""
    return sorted({each for kind in plugin_manager.names(GROUP) if (each := engine_of(kind))})

"""Kinds of sources that data sets are read from; an extension point. Imports no Arrow.

A package adds one by an entry point of the group ``mplang.sources``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mplang_core import BaseType, TableType
from mplang_core.ext import ConfigError, plugin_manager
from mplang_data.description import SIZE
from mplang_data.sources import duckdb_engine

if TYPE_CHECKING:  # which imports this module
    from mplang_data.apart.child import Reach
    from mplang_data.holding import DataSet, Queried, SourceQuery

GROUP = "mplang.sources"
DUCKDB = "duckdb"
"""Key of the engine that runs SQL over what it reads by itself, and over rows."""

_KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
}


class Source(ABC):
    """Kind of source, such as Parquet files.

    It is opened by the owner's process, which decides who reads what, and has all that the owner
    has: so opening looks at nothing that is in the source. It is probed, read and queried by
    confined processes, as those are that run programs: they have the open files only, no path, no
    password, but for what :meth:`access` adds for queries.

    SQL over it is run by DuckDB, by default on what :meth:`read` returns; one that DuckDB reads by
    itself has a :meth:`relation`. A database that runs SQL has an :meth:`engine_key`, an
    :meth:`access` and a :meth:`query` of its own; see :class:`mplang_data.ext.Database`.

    Where a data set has options, such as ``csv``, its source is probed and read with a keyword
    argument ``options``, too, which has them as plain data.

    Attributes:
        engine: the database that runs SQL over it, as catalogues publish it; ``None`` for DuckDB.
    """

    engine: str | None = None

    @abstractmethod
    def place(self, where: str, folder: str) -> str:
        """Return a place that does not depend on the working directory.

        Args:
            where: what follows the kind in the catalogue, such as a path.
            folder: the folder of the file that names it.

        Raises:
            SourceError: it is no such place.
        """

    @abstractmethod
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

    @abstractmethod
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

    @abstractmethod
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

    def reach(self, where: str) -> None:  # noqa: B027
        """Check that a source is there now; read nothing of it. A worker does, for ``/ready``.

        Raises:
            SourceError: it is not.
        """

    # -- SQL over it

    def engine_key(self, data_set: DataSet, kind: BaseType) -> str | None:
        """Return what runs SQL over a data set; those with equal keys are joined in one query.

        Args:
            data_set: the data set.
            kind: the columns that are read.

        Returns:
            By default ``"duckdb"``. ``None`` if the data set is read, and DuckDB runs the SQL on
            its rows.
        """
        return DUCKDB

    def files(self, where: str, kind: BaseType, *, size: int = SIZE) -> list[int]:
        """Open the files that a process reads, or queries; by default those of :meth:`open`.

        A source without any is read by :meth:`query`, too: by a SELECT of its columns.

        Raises:
            SourceError: there are none.
        """
        return self.open(where, kind, size=size)

    def paths(self, where: str, files: Sequence[int]) -> list[str]:
        """Return the paths that DuckDB reads by itself, and no others; by default none.

        Args:
            where: the place.
            files: descriptors of its open files.
        """
        return []

    def prepare(self) -> None:
        """Do before a fork what each process needs that queries such a source, such as imports."""
        duckdb_engine.prepare()

    def access(self, tables: Sequence[Queried], size: int) -> Reach:
        """Return what a process reaches that queries tables with one :meth:`engine_key`.

        Args:
            tables: the tables.
            size: bytes of the result.
        """
        return duckdb_engine.access(tables, size)

    def query(self, tables: Sequence[Queried], asked: SourceQuery) -> None:
        """Run one SELECT on tables with one :meth:`engine_key`, in a confined process.

        It checks that the SQL may run, and that the tables are what their owner says.

        Args:
            tables: the tables.
            asked: the SQL, its bounds, and what takes its result.

        Raises:
            AdmissionError: the SQL is not allowed, or the engine would give another answer.
            KernelError: it exceeds a bound, or the engine fails on the data.
            SourceError: a table is not what its owner says.
        """
        duckdb_engine.query(tables, asked)

    def relation(self, con: Any, where: str, files: Sequence[int], kind: TableType) -> str | None:
        """Return what SQL of DuckDB selects from, once a connection knows the source.

        Args:
            con: the connection, which reads the paths of its sources alone.
            where: the place.
            files: descriptors of its open files.
            kind: the columns that are read.

        Returns:
            What stands after ``FROM``; by default ``None``: :meth:`read` reads it.

        Raises:
            SourceError: the source is not what its owner says, or would read others.
        """
        return None


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
    return source_of(kind).engine


def engines() -> list[str]:
    """Return the engines of the kinds of sources that are installed, beside DuckDB."""
    return sorted({each for kind in plugin_manager.names(GROUP) if (each := engine_of(kind))})

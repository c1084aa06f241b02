"""Interface of kinds of sources. Imports no Arrow."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from mplang_core import BaseType, TableType
from mplang_data.apart.child import Reach
from mplang_data.description import SIZE, Description
from mplang_data.nan_values import without_nan
from mplang_data.range_check import check_published


class Placed(Protocol):
    """Data set with its place, such as a :class:`mplang_data.DataSet`."""

    @property
    def where(self) -> str:
        """The place of its source."""

    @property
    def nan(self) -> str | None:
        """What NaN is; see :class:`mplang_data.Description`."""


class Source(ABC):
    """Kind of source, such as Parquet files.

    It is opened by the owner's process, which decides who reads what, and has all that the owner
    has: so opening looks at nothing that is in the source. It is probed, read and queried by
    confined processes, as those are that run programs: they have the open files only, no path, no
    password, but for what :meth:`access` adds for queries.

    It says what runs SQL over it: of :class:`mplang_data.ext.Files` that is DuckDB, on what
    :meth:`read` returns, unless there is a :meth:`relation`. A database that runs SQL has an
    :meth:`engine_key`, an :meth:`access` and a :meth:`query` of its own; see
    :class:`mplang_data.ext.Database`.

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
            SourceError: it is not such a place.
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

    @abstractmethod
    def engine_key(self, data_set: Placed, kind: BaseType) -> str | None:
        """Return what runs SQL over a data set; those with equal keys are joined in one query.

        Args:
            data_set: the data set.
            kind: the columns that are read.

        Returns:
            ``None`` if the data set is read, and DuckDB runs the SQL on its rows.
        """

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

    @abstractmethod
    def prepare(self) -> None:
        """Do before a fork what each process needs that queries such a source, such as imports."""

    @abstractmethod
    def access(self, tables: Sequence[Queried], size: int) -> Reach:
        """Return what a process reaches that queries tables with one :meth:`engine_key`.

        Args:
            tables: the tables.
            size: bytes of the result.
        """

    @abstractmethod
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


class Opened(NamedTuple):
    """Data set that is open, so that it can be read without its place.

    Attributes:
        source: the kind of its source.
        description: what its owner says.
        files: descriptors of open files, which :meth:`close` closes.
        arguments: keyword arguments of the source's methods; see :attr:`DataSet.arguments`.
    """

    source: Source
    description: Description
    files: Sequence[int]
    arguments: Mapping[str, Any] = MappingProxyType({})

    def read(self, kind: BaseType) -> Any:
        """Read it, or a part of it.

        Args:
            kind: the array's type, or one of a table with some of its columns.

        Returns:
            A value of that type.

        Raises:
            SourceError: the source does not hold what its owner says.
        """
        value = self.source.read(self.files, kind, **self.arguments)
        return checked(value, kind, self.description)

    def close(self) -> None:
        """Close its files; what was read stays."""
        close_all(self.files)


class Queried(NamedTuple):
    """Data set of a query, in the process that reads it.

    Attributes:
        name: its name in the SQL.
        where: the place of its source.
        opened: its open files, and what its owner says.
        kind: the type that is read.
        match: columns that are there, too, of whatever type, and not read.
    """

    name: str
    where: str
    opened: Opened
    kind: BaseType
    match: Sequence[str] = ()


class SourceQuery(NamedTuple):
    """SELECT over data sets, as :meth:`mplang_data.Source.query` runs it.

    Attributes:
        sql: in the dialect of DuckDB; untrusted.
        gives: the type of its result.
        rows: rows of its result at most.
        size: bytes of its result at most.
        memory: bytes that the engine may take.
        seconds: time after which it is ended.
        connected: is called once a server is there, before it is asked for rows: what fails before
            is a source that cannot be reached.
        write: takes the result in parts, Arrow tables of that type.
        ordered: whether rows that the SQL does not sort come in the same order in each run; else
            they come as they are in the table.
        progress: is told now and then which percentage is done, if the engine knows it.
    """

    sql: str
    gives: TableType
    rows: int
    size: int
    memory: int
    seconds: float
    connected: Callable[[], None]
    write: Callable[[Any], None]
    ordered: bool = True
    progress: Callable[[float], None] = lambda percent: None


def checked(value: Any, kind: BaseType, description: Description) -> Any:
    """Return what was read of a data set, held against what its owner says.

    Raises:
        SourceError: it is something else.
    """
    ranges, values = description.ranges_of(kind), description.values_of(kind)
    if isinstance(kind, TableType):
        description.check_rows(value.num_rows)
    if description.nan is not None:
        value = without_nan(value, description.nan)
    if ranges or values:
        check_published(value, kind, ranges, values)
    return value


def close_all(files: Sequence[int]) -> None:
    """Close descriptors."""
    for file in files:
        os.close(file)

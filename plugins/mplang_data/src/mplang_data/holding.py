"""Data sets of one party, as its owner holds them: where they are, and who may read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from mplang_tables.ext import Place
from pydantic import Field, ValidationError, field_validator, model_validator

from mplang_core import BaseType, TableType
from mplang_core.ext import ConfigError
from mplang_data.apart import TIMEOUT
from mplang_data.description import (
    MAX_ROWS,
    SIZE,
    Description,
    NoDataSetError,
    NotOfferedError,
    Ranges,
    SourceError,
    check_name,
)
from mplang_data.nan_values import without_nan
from mplang_data.range_check import check_published
from mplang_data.sources import Source, engine_of, source_of
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.files import close_all


class DataSet(Description):
    """Data set in its owner's catalogue.

    Attributes:
        source: the kind and the place of it, such as ``parquet:/srv/patients/*.parquet``.
        readers: the coordinators that may name it; nobody by default.
        size: bytes that it may have in memory where it is read: rows of a database, and what a
            process takes that reads or checks it.
        seconds: time after which a reading or a query of it is ended.
        result_rows: rows that a query of it gives at most.
        csv: how CSV files of it are written; by default as programs write them.

    See :class:`Description` for the other fields.

    Example:
        >>> accounts = DataSet(
        ...     source="csv:accounts.csv", columns={"age": "int64", "id": "int64"},
        ...     match=["iban"], rows={"at_most": 50_000}, unit="id", readers=["analyst"])
        >>> accounts.kind, accounts.public()["rows"]
        ('csv', {'at_most': 50000})
    """

    secret = frozenset({"source"})

    source: str
    readers: tuple[str, ...] = ()
    size: int = Field(default=SIZE, gt=0, strict=True)
    seconds: float = Field(default=TIMEOUT, gt=0, le=604_800)
    result_rows: int = Field(default=MAX_ROWS, gt=0, le=MAX_ROWS, strict=True)
    csv: CsvOptions = CsvOptions()

    @field_validator("source")
    @classmethod
    def _has_kind(cls, source: str) -> str:
        kind, _, where = source.partition(":")
        if not kind or not where:
            raise ValueError("a source is a kind and a place, such as parquet:patients.parquet")
        try:
            source_of(kind)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return source

    @model_validator(mode="after")
    def _check_csv(self) -> DataSet:
        if self.csv != CsvOptions() and self.kind != "csv":
            raise ValueError(f"csv has the options of CSV files, and its source is {self.kind}")
        return self

    @model_validator(mode="after")
    def _runs_on(self) -> DataSet:
        """Take the engine of the source: an owner does not choose it."""
        there = engine_of(self.kind)
        if self.engine not in (None, there):
            raise ValueError(f"the engine of {self.kind} is {there}, got {self.engine!r}")
        self.__dict__["engine"] = there
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of its source's methods, as plain data: none, or ``options``."""
        options = self.csv.model_dump(mode="json", exclude_defaults=True)
        return {"options": options} if options else {}

    @property
    def kind(self) -> str:
        """The kind of its source."""
        return self.source.partition(":")[0]

    @property
    def where(self) -> str:
        """The place of its source."""
        return self.source.partition(":")[2]

    def at(self, folder: str) -> DataSet:
        """Return it with a place that does not depend on the working directory.

        Args:
            folder: the folder of the file that names it.

        Raises:
            ConfigError: it is no place of that kind, or no guard could count its units.
        """
        _check_unit(self)
        try:
            where = source_of(self.kind).place(self.where, folder)
        except SourceError as error:
            raise ConfigError(f"source {self.kind}: {error}") from None
        return self.model_copy(update={"source": f"{self.kind}:{where}"})

    def open(self, kind: BaseType | None = None) -> Opened:
        """Open its source.

        Args:
            kind: the type that is read; all that is offered by default.

        Raises:
            NotOfferedError: that is not offered.
            SourceError: there is no such source.
        """
        wanted = self.type if kind is None else kind
        refused = self.refusal(wanted)
        if refused:
            raise NotOfferedError(refused)
        source = source_of(self.kind)
        files = source.open(self.where, wanted, size=self.size)
        return Opened(source, self.description, files, self.arguments)

    @property
    def description(self) -> Description:
        """What its readers know."""
        return Description(**self.public())


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
        settings: limits of queries, as ``mplang_ibis`` takes them.
        connected: is called once a server is there, before it is asked for rows: what fails before
            is a source that cannot be reached.
        write: takes the result in parts, Arrow tables of that type.
        ordered: whether rows that the SQL does not sort come in the same order in each run; else
            they come as they are in the table.
    """

    sql: str
    gives: TableType
    rows: int
    size: int
    memory: int
    seconds: float
    settings: Mapping[str, Any]
    connected: Callable[[], None]
    write: Callable[[Any], None]
    ordered: bool = True


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


class Facts(NamedTuple):
    """What goes with a data set that stays at its source.

    Attributes:
        ranges: ranges that the program counts on.
        perhaps: whether private data may decide that it is read.
        run: name of the run that reads it.
    """

    ranges: Ranges
    perhaps: bool
    run: str


class DataSets(Place, Protocol):
    """Data sets that a party reads for the programs of one coordinator."""

    def read(self, name: str, kind: BaseType, ranges: Ranges, *, perhaps: bool) -> Any:
        """Read a data set.

        Args:
            name: its name.
            kind: the type that is read.
            ranges: ranges that the program counts on.
            perhaps: whether private data may decide that it is read. Then that its source cannot be
                reached is no excuse: it would tell of that data.

        Returns:
            A value of that type.

        Raises:
            NoDataSetError: there is none of that name that may be read.
            NotOfferedError: it does not offer that, or publishes no such range.
            SourceError: its source is not there, or does not hold what its owner says.
        """


def read_data_sets(fields: Any, folder: str) -> dict[str, DataSet]:
    """Return the data sets of a configuration.

    Args:
        fields: data sets by name, each with the fields of a :class:`DataSet`.
        folder: the folder that paths are relative to.

    Raises:
        ConfigError: names or fields are invalid; tells of all data sets.
    """
    if not isinstance(fields, Mapping):
        raise ConfigError(f"field 'data': expected data sets by name, got {type(fields).__name__}")
    found, wrong = {}, []
    for name, each in fields.items():
        try:
            made = each if isinstance(each, DataSet) else DataSet(**each)
            found[check_name(name)] = made.at(folder)
        except ValidationError as error:
            wrong.append(f"field 'data.{name}': {DataSet.explain(error, each)}")
        except (ConfigError, TypeError, ValueError) as error:
            wrong.append(f"field 'data.{name}': {error}")
    if wrong:
        raise ConfigError("\n".join(wrong))
    return found


def _check_unit(data_set: DataSet) -> None:
    """Check that guards can count the units of a data set, which programs read.

    Raises:
        ConfigError: they cannot.
    """
    if data_set.unit in data_set.match:
        raise ConfigError(
            f"the unit {data_set.unit!r} is in match, so no program can read it, and no guard "
            f"could count by it: name it in columns instead; rules decide that it never leaves"
        )


def offered(
    data_sets: Mapping[str, DataSet], name: str, kind: BaseType, ranges: Ranges, reader: str
) -> DataSet:
    """Return a data set that a coordinator may read.

    Args:
        data_sets: those of the party.
        name: its name.
        kind: the type that is read.
        ranges: ranges that the program counts on.
        reader: the coordinator.

    Raises:
        NoDataSetError: there is none of that name that the coordinator may read.
        NotOfferedError: it does not offer that.
    """
    there = data_sets.get(name)
    if there is None or reader not in there.readers:
        raise NoDataSetError(name)
    refused = there.refusal(kind) or there.range_refusal(kind, ranges)
    if refused:
        raise NotOfferedError(refused)
    return there

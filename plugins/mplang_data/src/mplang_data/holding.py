"""Data sets of one party, as its owner holds them: where they are, and who may read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from mplang_tables.ext import Place
from pydantic import Field, ValidationError, field_validator, model_validator

from mplang_core import BaseType
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
from mplang_data.sources import engine_of, source_of
from mplang_data.sources.csv_options import CsvOptions
from mplang_data.sources.source import Opened


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
            ConfigError: it is not a place of that kind, or no guard could count its units.
        """
        _check_unit(self)
        try:
            where = source_of(self.kind).place(self.where, folder)
        except SourceError as error:
            raise ConfigError(f"source {self.kind}: {error}", code="C008") from None
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
        """Public description, for its readers."""
        return Description(**self.public())


class Facts(NamedTuple):
    """Metadata of a data set that stays at its source.

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
                reached is not an excuse: it would tell of that data.

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
        raise ConfigError(
            f"field 'data': expected data sets by name, got {type(fields).__name__}", code="C008"
        )
    found, wrong = {}, []
    for name, each in fields.items():
        try:
            made = each if isinstance(each, DataSet) else DataSet(**_fields_of(each))
            found[check_name(name)] = made.at(folder)
        except ValidationError as error:
            wrong.append(f"field 'data.{name}': {DataSet.explain(error, each)}")
        except (ConfigError, TypeError, ValueError) as error:
            wrong.append(f"field 'data.{name}': {error}")
    if wrong:
        raise ConfigError("\n".join(wrong), code="C008")
    return found


def _fields_of(described: object) -> Mapping[str, Any]:
    """Return the fields of a description.

    Raises:
        ConfigError: it has none, as the path of a file, which a simulator takes.
    """
    if isinstance(described, Mapping):
        return described
    raise ConfigError(
        "expected its fields, as {'source': 'csv:people.csv', 'columns': {'id': 'string'}}, got "
        f"a {type(described).__name__}; `mplang data schema people.csv` proposes them",
        code="C008",
    )


def _check_unit(data_set: DataSet) -> None:
    """Check that guards can count the units of a data set, which programs read.

    Raises:
        ConfigError: they cannot.
    """
    if data_set.unit in data_set.match:
        raise ConfigError(
            f"the unit {data_set.unit!r} is in match, so no program can read it, and no guard "
            "could count by it: name it in columns instead; rules decide that it never leaves",
            code="C008",
        )


def offered(
    data_sets: Mapping[str, DataSet],
    name: str,
    kind: BaseType,
    ranges: Ranges,
    reader: str,
    *,
    matches: bool,
) -> DataSet:
    """Return a data set that a coordinator may read.

    Args:
        data_sets: those of the party.
        name: its name.
        kind: the type that is read.
        ranges: ranges that the program counts on.
        reader: the coordinator.
        matches: whether a gate sees to it that columns to match on are used for that alone.

    Raises:
        NoDataSetError: there is none of that name that the coordinator may read.
        NotOfferedError: it does not offer that.
    """
    there = data_sets.get(name)
    if there is None or reader not in there.readers:
        raise NoDataSetError(name)
    refused = there.refusal(kind) or there.range_refusal(kind, ranges)
    if not refused and not matches and there.refusal(kind, matches=False):
        refused = (
            "a column is offered for matching only, which needs a gate, and this worker has none; "
            "its owner adds one (gate:), or offers the column to read"
        )
    if refused:
        raise NotOfferedError(refused)
    return there

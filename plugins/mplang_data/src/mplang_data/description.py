"""Descriptions of data sets: what an owner tells those who may read them. Imports no Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from mplang_tables import check_table, check_values, number_columns
from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from mplang_core import BaseType, TableType, TensorType
from mplang_core.ext import StrictModel, parse_base_type

NAME = r"[A-Za-z][A-Za-z0-9_-]{0,62}"
"""What a data set is called: no path, and nothing that a shell or a file system reads."""

_ALIASES = {
    "float64": "double",
    "float32": "float",
    "str": "string",
    "text": "string",
    "bytes": "binary",
    "date": "date32[day]",
    "time": "time64[us]",
    "timestamp": "timestamp[us]",
}
_DECIMAL = re.compile(r"decimal(?:128)?\((\d+), ?(\d+)\)")

SIZE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
"""Bytes that a source may have in memory, by default: a quarter of the machine's."""

MAX_ROWS = 1 << 53
Rows: TypeAlias = Annotated[int, Field(ge=0, le=MAX_ROWS, strict=True)]

Ranges: TypeAlias = Sequence[Sequence[float] | None]
"""For each column the smallest and the largest number; of an array one pair. Empty for none."""


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError(f"a range is [low, high], got [{ends[0]:g}, {ends[1]:g}]")
    return ends


_End: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Range: TypeAlias = Annotated[tuple[_End, _End], AfterValidator(_ordered)]


MAX_VALUES = 4096
Values: TypeAlias = Annotated[
    tuple[StrictBool | StrictInt | StrictStr, ...], Field(max_length=MAX_VALUES)
]
"""All values that a column may have."""


class SourceError(Exception):
    """A source does not hold what its owner says. The text names columns, no values and no path.

    Args:
        text: what a coordinator may read: it depends on no row.
        detail: what is wrong where, for the owner and on a simulator: a column, a row, a remedy.
    """

    def __init__(self, text: str, *, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail


class SourceUnreachableError(SourceError):
    """A source cannot be opened now, before anything of it was read, as a database that is down.

    A run that fails so counts as no failed run of its coordinator: it depends on no data.
    """


class NoDataSetError(Exception):
    """No data set of that name may be read."""


class NotOfferedError(Exception):
    """A data set does not offer what is read; the text may be told to its readers."""


def columns_read(name: str, kind: object) -> tuple[str, ...]:
    """Return what is read of a data set: its columns, or itself if it is an array.

    Example:
        >>> columns_read("people", TableType((("age", "int64"), ("sex", "string"))))
        ('people.age', 'people.sex')
    """
    columns = [column for column, _ in kind.columns] if isinstance(kind, TableType) else []
    return tuple(f"{name}.{column}" for column in columns) or (name,)


def column_type(name: str) -> str:
    """Return the Arrow type that the type of a column in a catalogue stands for.

    Example:
        >>> column_type("float64"), column_type("decimal(12, 2)"), column_type("int64")
        ('double', 'decimal128(12, 2)', 'int64')
    """
    decimal = _DECIMAL.fullmatch(name)
    return f"decimal128({decimal[1]}, {decimal[2]})" if decimal else _ALIASES.get(name, name)


class Bound(StrictModel):
    """Bound of a number of rows that is itself private.

    Attributes:
        at_most: there are no more.
    """

    at_most: int = Field(ge=0, le=MAX_ROWS, strict=True)


class Description(StrictModel):
    """Public description of a data set: everything except its rows.

    Attributes:
        columns: the columns that may be read, each with its type; empty for an array.
        array: the type of an array, such as ``f64[569, 30]``; ``None`` for a table.
        match: columns that may be matched on, and are not read, each with its type; without types,
            as ``[ssn]``, they are strings.
        rows: the number of rows, or a bound of it; ``None`` if neither is published.
        keys: by column a bound of how many different values it has, to which a match or a join by
            it is padded; more are an error there.
        unit: the column that tells whose rows these are, such as a patient's number.
        ranges: by column the smallest and the largest number that there may be.
        values: by column of strings, integers or bools all values that it may have, besides null.
        range: those of an array.
        nan: what NaN in a column of floats is: ``"missing"``, as null is, or ``"error"``. By
            default it is a number of SQL and of functions, and missing in guards and noisy ops.
        engine: the database in which SQL over it runs, such as ``"postgresql"``; ``None`` for
            DuckDB. It is that of its source: what that would answer in another way is refused while
            compiling.

    Example:
        >>> patients = Description(columns={"age": "int64", "pay": "decimal(12, 2)"}, rows=41250,
        ...                        ranges={"age": (0, 120)})
        >>> print(patients.type)
        table<["age", "int64"], ["pay", "decimal128(12, 2)"]>
    """

    columns: dict[str, str] = Field(default_factory=dict)
    array: str | None = None
    match: dict[str, str] = Field(default_factory=dict)
    rows: Rows | Bound | None = None
    keys: dict[str, Bound] = Field(default_factory=dict)
    unit: str | None = None
    ranges: dict[str, Range] = Field(default_factory=dict)
    values: dict[str, Values] = Field(default_factory=dict)
    range: Range | None = None
    nan: Literal["missing", "error"] | None = None
    engine: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,31}$")

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Yield the fields that its owner has published, for ``repr`` and ``str``."""
        fields = type(self).model_fields
        for name, value in super().__repr_args__():
            if value != fields[str(name)].get_default(call_default_factory=True):
                yield name, value

    @field_validator("match", mode="before")
    @classmethod
    def _strings(cls, match: object) -> object:
        return dict.fromkeys(match, "string") if isinstance(match, list | tuple) else match

    @field_validator("columns", "match")
    @classmethod
    def _full_names(cls, columns: dict[str, str]) -> dict[str, str]:
        return {name: column_type(kind) for name, kind in columns.items()}

    @model_validator(mode="after")
    def _check(self) -> Description:
        if (self.array is None) == (not self.columns):
            raise ValueError(
                "it needs columns: by name and type, as columns: {id: int64, city: string}, or "
                "array: such as f64[569, 30]"
            )
        of_tables = self.match or self.unit or self.keys or self.rows is not None
        if self.array is not None and of_tables:
            raise ValueError("an array has no rows, keys, match and unit: its shape is published")
        if self.unit is not None and self.unit not in (*self.columns, *self.match):
            raise ValueError(f"the unit {self.unit!r} is a column that is offered or matched on")
        if self.range is not None and self.array is None:
            raise ValueError("a table has ranges, by column; a range is an array's")
        if self.range is not None and self.array and self.array.startswith(("c64", "c128")):
            raise ValueError(f"a range of {self.array}, whose numbers have no order")
        if self.nan == "missing" and self.array is not None:
            raise ValueError("an array has no missing values; nan: error refuses those with NaN")
        for column in self.keys:
            if column not in {**self.columns, **self.match}:
                raise ValueError(f"keys: {column!r} is not a column that is offered or matched on")
        for column in self.ranges:
            if column not in self.columns:
                raise ValueError(f"a range of {column!r}, which is not a column that is offered")
            found = self.columns[column]
            if found == "bool" or not number_columns(TableType(((column, found),))):
                raise ValueError(f"a range of {column!r}, which is of no numbers, but of {found}")
        self._check_values()
        both = sorted(set(self.match) & self.columns.keys())
        if both:
            raise ValueError(f"{', '.join(both)} may be matched on, and so cannot be read as well")
        try:
            if self.match:
                check_table(TableType(tuple(self.match.items())))
            kind = self.type
        except (TypeError, ValueError) as error:
            raise ValueError(str(error)) from None
        if not isinstance(kind, TableType | TensorType):
            raise ValueError(f"an array is a tensor, such as f64[569, 30], got {kind}")
        return self

    def _check_values(self) -> None:
        for column, values in self.values.items():
            if column not in self.columns:
                raise ValueError(f"values of {column!r}, which is not a column that is offered")
            kind = self.columns[column]
            try:
                check_values(TableType(((column, kind),)), column, values)
            except TypeError as error:
                is_word = kind == "string" and any(isinstance(each, bool) for each in values)
                quote = "; in YAML, words such as no and on stand in quotes" if is_word else ""
                raise ValueError(f"values: {error}{quote}") from None

    @property
    def type(self) -> BaseType:
        """The type of the whole: a table of all columns that are offered, or the array."""
        if self.array is not None:
            return parse_base_type(self.array)
        kind = TableType(tuple(self.columns.items()))
        check_table(kind)
        return kind

    def of(self, columns: Sequence[str], match: Sequence[str] = ()) -> BaseType:
        """Return the type of some columns.

        Args:
            columns: columns that are read.
            match: columns that are matched on.

        Raises:
            TypeError: one is not offered.
        """
        if self.array is not None:
            raise TypeError(f"it is an array, {self.array}, and has no columns")
        read = [(name, self._offered(name, match=False)) for name in columns]
        kind = TableType((*read, *((name, self._offered(name, match=True)) for name in match)))
        check_table(kind)
        return kind

    def _offered(self, column: str, *, match: bool) -> str:
        """Return the type of a column that may be read, or matched on.

        Raises:
            TypeError: it may not.
        """
        there = self.match if match else self.columns
        if column in there:
            return there[column]
        if match:
            named = ", ".join(self.match) or "none"
            raise TypeError(f"column {column!r} is not offered to match on; {named} may be")
        if column in self.match:
            raise TypeError(
                f"column {column!r} may be matched on, and is not read; mp.dataset(…, "
                f"match=[{column!r}]) has it for mp.match"
            )
        raise TypeError(f"offers no column {column!r}; it offers {', '.join(self.columns)}")

    def refusal(self, kind: BaseType, *, matches: bool = True) -> str | None:
        """Return why a program may not read it as a type; ``None`` if it may.

        Args:
            kind: the type.
            matches: whether somebody sees to it that columns to match on are used for that alone.

        Example:
            >>> Description(columns={"age": "int64"}).refusal(TableType((("age", "double"),)))
            "column 'age' is int64, the program says double"
        """
        if not isinstance(kind, TableType) or self.array is not None:
            found = self.type
            return None if found == kind else f"it is {found}, the program says {kind}"
        for name, wanted in kind.columns:
            try:
                offered = self._offered(name, match=matches and name in self.match)
            except TypeError as error:
                return str(error)
            if offered != wanted:
                return f"column {name!r} is {offered}, the program says {wanted}"
        return None

    def ranges_of(self, kind: BaseType) -> Ranges:
        """Return the published ranges of what is read: one for each column, or that of the array.

        Returns:
            ``None`` stands for a column without one; empty if none is published.
        """
        if not isinstance(kind, TableType):
            return () if self.range is None else (self.range,)
        found = tuple(self._range_of(column) for column, _ in kind.columns)
        return found if any(found) else ()

    def _range_of(self, column: str) -> Sequence[float] | None:
        """Return the published range of a column, or that of its published integers."""
        numbers = [each for each in self.values.get(column, ()) if type(each) is int]
        return self.ranges.get(column) or ((min(numbers), max(numbers)) if numbers else None)

    def values_of(self, kind: BaseType) -> dict[str, Values]:
        """Return the published values of what is read, by column."""
        columns = [name for name, _ in kind.columns] if isinstance(kind, TableType) else []
        return {name: self.values[name] for name in columns if name in self.values}

    def range_refusal(self, kind: BaseType, ranges: Ranges) -> str | None:
        """Return why a program may not count on ranges; ``None`` if it may.

        Example:
            >>> ages = Description(columns={"age": "int64"}, ranges={"age": (0, 120)})
            >>> ages.range_refusal(ages.type, ((0, 100),))
            "column 'age' is within [0.0, 120.0], the program says [0, 100]"
        """
        names = [name for name, _ in kind.columns] if isinstance(kind, TableType) else [""]
        published = self.ranges_of(kind) or (None,) * len(names)
        for name, wanted, here in zip(names, ranges, published, strict=bool(ranges)):
            if wanted is None or (here and wanted[0] <= here[0] and here[1] <= wanted[1]):
                continue
            what = f"column {name!r}" if name else "it"
            there = f"within {list(here)}" if here else "of no published range"
            return f"{what} is {there}, the program says {list(wanted)}"
        return None

    def check_rows(self, count: int) -> None:
        """Check a number of rows against what is published.

        Raises:
            SourceError: there are others.
        """
        if isinstance(self.rows, int) and count != self.rows:
            raise SourceError(f"it does not have the {self.rows} rows that are published")
        if isinstance(self.rows, Bound) and count > self.rows.at_most:
            raise SourceError(f"it has more rows than {self.rows.at_most}, as are published")

    def check_keys(self, column: str, count: int) -> None:
        """Check a number of different values of a column against what is published.

        Raises:
            SourceError: there are more.
        """
        most = self.keys[column].at_most
        if count > most:
            raise SourceError(
                f"column {column!r} has more different values than {most}, as are published"
            )

    def public(self) -> dict[str, Any]:
        """Return it as plain data, without defaults."""
        fields = set(Description.model_fields)
        found: dict[str, Any] = self.model_dump(mode="json", include=fields, exclude_defaults=True)
        return found


def read_descriptions(data: Any, *, newer: bool = False) -> dict[str, Description]:
    """Return descriptions by name, of plain data that is not trusted.

    Args:
        data: the data.
        newer: whether they may have more fields than are known here.

    Raises:
        ValueError: a name is none of a data set.
        ConfigError: a description is invalid.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"expected data sets by name, got a {type(data).__name__}")
    found = {}
    for name, each in data.items():
        check_name(name)
        if newer and isinstance(each, Mapping):
            each = {field: each[field] for field in Description.model_fields if field in each}
        found[name] = each if isinstance(each, Description) else Description(**each)
    return found


def check_name(name: Any) -> str:
    """Return the name of a data set.

    Raises:
        ValueError: it is none.

    Example:
        >>> check_name("../patients")
        Traceback (most recent call last):
        ValueError: '../patients' is not a name of a data set: letters, digits, - and _, no path
    """
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        shown = repr(name)[:80]
        raise ValueError(f"{shown} is not a name of a data set: letters, digits, - and _, no path")
    return name

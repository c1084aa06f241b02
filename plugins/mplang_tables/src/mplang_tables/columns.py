"""Types of columns that Arrow and SQL share. Imports no Arrow."""

from __future__ import annotations

import re

from mplang_core import TableType

MAX_COLUMNS = 4096
MAX_NAMES = 64 << 10  # characters of all names, which each type of a table is written with

_TYPES = {
    *("bool", "float", "double", "string", "binary", "date32[day]", "time64[us]", "time64[ns]"),
    *(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)),
    *(f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns", "us, tz=UTC")),
    *(f"decimal128({digits}, {scale})" for digits in range(1, 39) for scale in range(digits + 1)),
}

DTYPES = {
    "bool": "bool",
    **{f"{sign}int{n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "float": "f32",
    "double": "f64",
}
"""Element types of tensors by the types of columns that tensors have a place for."""
ARROW_TYPES = {dtype: arrow for arrow, dtype in DTYPES.items()}

# as polars, pandas or DuckDB give them
_OTHER_LAYOUTS = ("large_", "string_view", "binary_view", "date64", "dictionary<")

_NUMBERS = re.compile("u?int|float|double|decimal|bool")


def check_table(kind: TableType) -> None:
    """Refuse table types that SQL would not preserve.

    Raises:
        TypeError: Arrow and DuckDB do not share the type of a column.
        ValueError: there are no or too many columns, or their names are not unique.

    Example:
        >>> check_table(TableType((("a", "float64"),)))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        TypeError: column 'a' is of the type 'float64'; ... (a float64 is a 'double', ...)
    """
    if not 0 < len(kind.columns) <= MAX_COLUMNS:
        raise ValueError(f"a table has 1 to {MAX_COLUMNS} columns, got {len(kind.columns)}")
    if sum(len(name) for name, _ in kind.columns) > MAX_NAMES:
        raise ValueError(f"the names of a table's columns have at most {MAX_NAMES} characters")
    seen: set[str] = set()
    for name, type in kind.columns:
        if not name or "\0" in name or not _encodes(name):
            raise ValueError(f"{name!r} is not a name of a column")
        if name.lower() in seen:
            raise ValueError(f"two columns are called {name!r}; SQL ignores upper and lower case")
        seen.add(name.lower())
        if type not in _TYPES:
            raise TypeError(f"column {name!r} is of the type {type!r}; {_advice(type)}")


def wide_dtype(type: str) -> str | None:
    """Return the element type of a tensor of a column's numbers, whose sums do not wrap.

    Args:
        type: the type of the column.

    Returns:
        ``i64`` for integers and bools, but ``u64`` for those of 64 bits without sign; ``None`` if a
        tensor has no place for it.

    Example:
        >>> wide_dtype("int8"), wide_dtype("bool"), wide_dtype("float"), wide_dtype("string")
        ('i64', 'i64', 'f32', None)
    """
    dtype = DTYPES.get(type)
    return "i64" if type == "bool" or (is_integer(type) and dtype != "u64") else dtype


def is_number(type: str) -> bool:
    """Return whether a column of a type holds numbers, decimals or bools.

    Example:
        >>> is_number("int64"), is_number("string")
        (True, False)
    """
    return _NUMBERS.match(type) is not None


def is_integer(type: str) -> bool:
    """Return whether a column of a type holds integers.

    Example:
        >>> is_integer("uint8"), is_integer("bool")
        (True, False)
    """
    return type.lstrip("u").startswith("int")


def number_columns(kind: TableType) -> list[str]:
    """Return the names of the columns of numbers, decimals and bools.

    Example:
        >>> number_columns(TableType((("name", "string"), ("age", "int64"), ("ok", "bool"))))
        ['age', 'ok']
    """
    return [name for name, type in kind.columns if is_number(type)]


def type_of_column(kind: TableType, column: str) -> str:
    """Return the type of a column.

    Raises:
        TypeError: there is no such column.

    Example:
        >>> type_of_column(TableType((("age", "int64"),)), "age")
        'int64'
    """
    types = dict(kind.columns)
    if column not in types:
        raise TypeError(f"there is no column {column!r}; there are {', '.join(types)}")
    return types[column]


def replaced(kind: TableType, column: str, *columns: tuple[str, str]) -> TableType:
    """Return the type of a table with other columns in place of one.

    Raises:
        TypeError: the type of a column is not supported.
        ValueError: there are too many columns, or their names are not unique.

    Example:
        >>> print(replaced(TableType((("a", "int64"), ("b", "bool"))), "a", ("c", "double")))
        table<["c", "double"], ["b", "bool"]>
    """
    i = [name for name, _ in kind.columns].index(column)
    made = TableType((*kind.columns[:i], *columns, *kind.columns[i + 1 :]))
    check_table(made)
    return made


def _advice(type: str) -> str:
    if type == "null":
        return 'it is empty; give it a type, as by astype("float64") or astype("string")'
    if type.startswith("timestamp"):
        return 'times have no zone, or are timestamp[us, tz=UTC], as by dt.tz_convert("UTC")'
    if type.startswith("duration"):
        return "tables have no durations; make numbers of them, as by dt.total_seconds()"
    if type.startswith("extension<pandas.period"):
        return "tables have no periods; make times of them, as by dt.to_timestamp()"
    if type.startswith(("list<", "large_list<", "struct<", "map<", "fixed_size_list<")):
        return "a cell holds one value; make rows or columns of it, as by frame.explode('name')"
    if type.startswith(_OTHER_LAYOUTS):
        return (
            "tables of programs have one layout for each kind of values; mplang_tables.arrow.plain "
            "makes a table of it"
        )
    return (
        "expected an Arrow type as pyarrow writes it: bool, int64, double, string, binary, "
        "date32[day], time64[us] (or ns), timestamp[us] (or s, ms, ns), decimal128(10, 2), … "
        "(a float64 is a 'double', a float32 a 'float')"
    )


def _encodes(text: str) -> bool:
    return text == text.encode(errors="replace").decode()

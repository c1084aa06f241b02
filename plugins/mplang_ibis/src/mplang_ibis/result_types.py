"""Types of a result: what DuckDB gives, as Arrow has it. Imports no DuckDB and no Arrow.

Ibis has one type for a sum, a product and a mean of decimals; DuckDB has others, which hold the
digits. A result is cast to its declared type at the party, where a misfit would be an error that
depends on data. So it is declared with the type that DuckDB gives it, or refused while compiling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mplang_core import TableType

_ARROW = {
    "BOOLEAN": "bool", "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32",
    "BIGINT": "int64", "UTINYINT": "uint8", "USMALLINT": "uint16", "UINTEGER": "uint32",
    "UBIGINT": "uint64", "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string",
    "JSON": "string", "UUID": "string", "BLOB": "binary", "DATE": "date32[day]",
    "TIME": "time64[us]", "TIME_NS": "time64[ns]", "TIMESTAMP": "timestamp[us]",
    "TIMESTAMP_S": "timestamp[s]", "TIMESTAMP_MS": "timestamp[ms]",
    "TIMESTAMP_NS": "timestamp[ns]", "TIMESTAMP WITH TIME ZONE": "timestamp[us, tz=UTC]",
}  # fmt: skip

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")

_REMEDIES = (
    (r".*\]$", "give its values rows by unnest, or make a text of it by array_to_string"),
    (r"STRUCT\(", "take its fields, each as a column"),
    (r"MAP\(", "take the values of its keys, each as a column"),
    (r"INTERVAL$", "count in a unit, as by date_diff('day', a, b) in SQL, or delta in Ibis"),
    (r"TIME WITH TIME ZONE$", "cast it to TIME, or keep the whole time and cast it to TIMESTAMPTZ"),
    (r"UHUGEINT$", "cast it to HUGEINT, DECIMAL(38, 0) or DOUBLE"),
)


def declared(columns: Sequence[tuple[str, str]], inferred: Mapping[str, str] = {}) -> TableType:
    """Return the type that a result is declared with.

    A sum of integers, which DuckDB gives 128 bits, has 64: the party that runs the query fails if
    they do not hold it.

    Args:
        columns: the name and DuckDB's type of each column.
        inferred: types of columns that a frontend infers, by which a sum is a ``uint64``.

    Raises:
        TypeError: tables do not have the type of a column; says what to do.

    Example:
        >>> print(declared([("x", "DECIMAL(18,4)"), ("n", "HUGEINT"), ("y", "BIGINT")]))
        table<["x", "decimal128(18, 4)"], ["n", "int64"], ["y", "int64"]>
    """
    return TableType(
        tuple((name, _arrow(name, type, inferred.get(name, ""))) for name, type in columns)
    )


def described(sql: str, tables: Mapping[str, TableType]) -> TableType:
    """Return the columns and types that one SELECT gives, without data. Imports DuckDB.

    Args:
        sql: in the dialect of DuckDB.
        tables: types of the tables that it reads, by name.

    Raises:
        AdmissionError: it may not run at a party.
        TypeError: tables do not have the type of a column.

    Example:
        >>> kind = TableType((("p", "decimal128(5, 2)"),))
        >>> print(described('SELECT "p" * 2 AS "twice" FROM "x"', {"x": kind}))
        table<["twice", "decimal128(15, 2)"]>
    """
    from mplang_ibis.query import types_of

    return declared(types_of(sql, tables))


def _arrow(name: str, type: str, inferred: str) -> str:
    if type == "HUGEINT":
        return "uint64" if inferred == "uint64" else "int64"
    if match := _DECIMAL.fullmatch(type):
        return f"decimal128({match[1]}, {match[2]})"
    if type.startswith("ENUM(") and not type.endswith("]"):
        return "string"
    if type in _ARROW:
        return _ARROW[type]
    kinds = (remedy for pattern, remedy in _REMEDIES if re.match(pattern, type, re.DOTALL))
    remedy = next(kinds, "cast it to a type that they have")
    shown = type if len(type) < 100 else f"{type[:100]}…"
    raise TypeError(
        f"column {name!r} is of DuckDB's type {shown}, which tables do not have; {remedy}"
    )

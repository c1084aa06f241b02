"""SQL types of DuckDB, and its rules for the type of an expression of several."""

from __future__ import annotations

from typing import NamedTuple

from mplang_ibis.syntax import Node

MAX_DIGITS = 38  # of a decimal
_MAX_DIGITS_INT64 = 18  # of a decimal that DuckDB keeps in 64 bits


class SqlType(NamedTuple):
    """Type of an expression.

    Attributes:
        name: ``int64``, ``decimal``, ``string``, …; ``null`` of a bare NULL.
        width: digits of a decimal.
        scale: those of its digits after the point.
    """

    name: str
    width: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"DECIMAL({self.width}, {self.scale})"
        return _NAMES.get(self.name, self.name.upper())


BOOL, STRING, BINARY = SqlType("bool"), SqlType("string"), SqlType("binary")
INT8, INT16, INT32, INT64 = (SqlType(f"int{bits}") for bits in (8, 16, 32, 64))
INT128 = SqlType("int128")
FLOAT, DOUBLE = SqlType("float"), SqlType("double")
DATE, TIME = SqlType("date"), SqlType("time")
TIMESTAMP, TIMESTAMPTZ = SqlType("timestamp"), SqlType("timestamptz")
INTERVAL, NULL = SqlType("interval"), SqlType("null")

INTEGERS = (INT8, INT16, INT32, INT64, INT128)
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19, 38), strict=True))
_BITS = dict(zip(INTEGERS, (8, 16, 32, 64, 128), strict=True))
_TIMES = (DATE, TIMESTAMP, TIMESTAMPTZ)

_DUCKDB = {
    "BOOLEAN": BOOL, "TINYINT": INT8, "SMALLINT": INT16, "INTEGER": INT32, "BIGINT": INT64,
    "HUGEINT": INT128, "FLOAT": FLOAT, "DOUBLE": DOUBLE, "VARCHAR": STRING, "BLOB": BINARY,
    "DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP, "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "INTERVAL": INTERVAL, "NULL": NULL,
}  # fmt: skip
_NAMES = {kind.name: name for name, kind in _DUCKDB.items()}
_ARROW = {
    "bool": BOOL, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "float": FLOAT,
    "double": DOUBLE, "string": STRING, "binary": BINARY, "date32[day]": DATE, "time64[us]": TIME,
    "timestamp[us]": TIMESTAMP, "timestamp[us, tz=UTC]": TIMESTAMPTZ,
}  # fmt: skip


def decimal(width: int, scale: int) -> SqlType:
    """Return a decimal type.

    Example:
        >>> print(decimal(12, 2))
        DECIMAL(12, 2)
    """
    return SqlType("decimal", width, scale)


def type_of_column(name: str) -> SqlType | None:
    """Return the type of a column of a table; ``None`` if other engines lack it.

    Example:
        >>> print(type_of_column("decimal128(12, 2)"), type_of_column("uint8"))
        DECIMAL(12, 2) None
    """
    if name.startswith("decimal128("):
        width, scale = name[len("decimal128(") : -1].split(",")
        return decimal(int(width), int(scale))
    return _ARROW.get(name)


def type_of_cast(node: Node) -> SqlType | None:
    """Return the type that DuckDB's syntax tree names; ``None`` if other engines lack it."""
    if node["id"] == "DECIMAL":
        info = node["type_info"]
        return decimal(info["width"], info.get("scale", 0))
    return _DUCKDB.get(node["id"]) if node.keys() <= {"id"} else None


def is_integer(kind: SqlType) -> bool:
    """Return whether a type is one of integers."""
    return kind in _DIGITS


def is_exact(kind: SqlType) -> bool:
    """Return whether a type is one of integers or decimals."""
    return kind in _DIGITS or kind.name == "decimal"


def is_number(kind: SqlType) -> bool:
    """Return whether a type is one of numbers."""
    return is_exact(kind) or kind in (FLOAT, DOUBLE)


def as_decimal(kind: SqlType) -> SqlType:
    """Return the decimal type in which DuckDB computes with integers or decimals.

    Example:
        >>> print(as_decimal(INT64))
        DECIMAL(19, 0)
    """
    return kind if kind.name == "decimal" else decimal(_DIGITS[kind], 0)


def fits(value: int, kind: SqlType) -> bool:
    """Return whether an integer is within a type of integers."""
    bits = _BITS[kind]
    return -(1 << bits - 1) <= value < 1 << bits - 1


def common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """Return the type to which DuckDB casts values of two types; ``None`` if that is not known.

    Example:
        >>> print(common_type(INT64, decimal(2, 1)), common_type(DATE, TIMESTAMP))
        DECIMAL(20, 1) TIMESTAMP
    """
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if is_integer(a) and is_integer(b):
        return max(a, b, key=_BITS.__getitem__)
    if is_exact(a) and is_exact(b):
        x, y = as_decimal(a), as_decimal(b)
        scale = max(x.scale, y.scale)
        width = max(x.width - x.scale, y.width - y.scale) + scale
        return decimal(width, scale) if width <= MAX_DIGITS else None
    if is_number(a) and is_number(b) and DOUBLE in (a, b):
        return DOUBLE
    if a in _TIMES and b in _TIMES:
        return max(a, b, key=_TIMES.index)
    return None


def compared_type(a: SqlType, b: SqlType) -> SqlType | None:
    """Return the type in which DuckDB compares exact numbers of two types: digits may overflow.

    Example:
        >>> print(compared_type(decimal(38, 2), decimal(38, 12)))
        DECIMAL(38, 12)
    """
    if not (is_exact(a) and is_exact(b)):
        return None
    return common_type(a, b) or decimal(MAX_DIGITS, max(as_decimal(a).scale, as_decimal(b).scale))


def sum_type(a: SqlType, b: SqlType) -> SqlType:
    """Return the type of the sum of two decimals."""
    scale = max(a.scale, b.scale)
    width = max(a.width - a.scale, b.width - b.scale) + scale + 1
    return decimal(_capped(width, a, b), scale)


def product_type(a: SqlType, b: SqlType) -> SqlType | None:
    """Return the type of the product of two decimals; ``None`` if it would have too many digits."""
    scale = a.scale + b.scale
    if scale > MAX_DIGITS:
        return None
    width = a.width + b.width
    return decimal(_capped(width, a, b) if scale < _MAX_DIGITS_INT64 else min(width, 38), scale)


def _capped(width: int, a: SqlType, b: SqlType) -> int:
    """Return a width as DuckDB caps it, which then watches for overflows."""
    is_narrow = max(a.width, b.width) <= _MAX_DIGITS_INT64
    return min(width, _MAX_DIGITS_INT64 if is_narrow else MAX_DIGITS)

"""Equality of keys: kinds of key columns, whatever their width or unit. Imports no Arrow."""

from __future__ import annotations

import re
from typing import NamedTuple

_DECIMAL = re.compile(r"decimal128\(\d+, (\d+)\)")
_TIME = re.compile(r"(timestamp|time64)\[(s|ms|us|ns)(, tz=UTC)?\]")
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Digits of the units of times behind the point of seconds."""
_FLOATS = ("float", "double")


class KeyKind(NamedTuple):
    """Kind of a key column: columns of one kind are compared by value.

    Attributes:
        name: such as ``integer``.
        scale: digits behind the point, of a decimal, or of seconds of a time; else 0.
    """

    name: str
    scale: int = 0


def kind_of(type: str) -> KeyKind:
    """Return the kind of a key column.

    Args:
        type: its Arrow type.

    Raises:
        TypeError: it is of floats, which do not match by value.

    Example:
        >>> kind_of("uint8") == kind_of("int64"), kind_of("string")
        (True, KeyKind(name='string', scale=0))
    """
    if type in _FLOATS:
        raise TypeError(
            f"{type} is not a type of a key: floats are equal in their last bit or not at all; "
            "cast them to integers or decimals"
        )
    if parts := _DECIMAL.fullmatch(type):
        return KeyKind("decimal", int(parts[1]))
    if parts := _TIME.fullmatch(type):
        name = {"time64": "time", "timestamp": "timestamp"}[parts[1]]
        return KeyKind(f"{name} in UTC" if parts[3] else name, DIGITS[parts[2]])
    if type.lstrip("u").startswith("int"):
        return KeyKind("integer")
    return KeyKind({"date32[day]": "date"}.get(type, type))


def common_kind(a: str, b: str) -> KeyKind:
    """Return the kind by which key columns of two types are compared.

    Args:
        a: the Arrow type of the one.
        b: that of the other.

    Raises:
        TypeError: they are of different kinds, so that nothing would match.

    Example:
        >>> common_kind("decimal128(5, 2)", "decimal128(9, 4)")
        KeyKind(name='decimal', scale=4)
        >>> common_kind("int64", "string")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        TypeError: int64 does not match string: no value of one equals a value of the other; ...
    """
    kinds = kind_of(a), kind_of(b)
    if kinds[0].name != kinds[1].name:
        raise TypeError(
            f"{a} does not match {b}: no value of one equals a value of the other; cast one of them"
        )
    return max(kinds)

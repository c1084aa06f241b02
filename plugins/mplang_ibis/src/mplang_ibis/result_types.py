"""Types of a result: what Ibis infers, held against what DuckDB gives. Imports Arrow.

Ibis has one type for a sum, a product and a mean of decimals; DuckDB has others, which hold the
digits. A result is cast to its declared type at the party, where a misfit would be an error that
depends on data. So it is settled while compiling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa  # type: ignore[import-untyped]

_UNITS = ("s", "ms", "us", "ns")


def declared(inferred: Any, found: Any) -> Any:
    """Return the Arrow schema that a result is declared with.

    Args:
        inferred: the schema that Ibis infers.
        found: the schema of what DuckDB gives.

    Raises:
        TypeError: values of a column would lose digits, or would be others; says what to do.

    Example:
        >>> inferred = pa.schema([("x", pa.decimal128(12, 2)), ("n", pa.int64())])
        >>> found = pa.schema([("x", pa.decimal128(18, 4)), ("n", pa.decimal128(38, 0))])
        >>> declared(inferred, found)
        x: decimal128(18, 4)
        n: int64
    """
    pairs = zip(inferred, found, strict=True)
    return pa.schema([(a.name, _declared(a.name, a.type, b.type)) for a, b in pairs])


def _declared(name: str, inferred: Any, found: Any) -> Any:
    kinds = pa.types
    if inferred == found:
        return inferred
    if _is_number(inferred) and _is_number(found):
        if kinds.is_decimal(inferred):
            return found
        if kinds.is_integer(inferred) and not _is_whole(found):
            _refuse(name, inferred, found, "a cast or round() of it")
    elif kinds.is_timestamp(inferred) and kinds.is_timestamp(found):
        if _UNITS.index(found.unit) < _UNITS.index(inferred.unit):
            _refuse(name, inferred, found, 'a cast of its operands to "timestamp(6)"')
    elif not any(is_one(inferred) and is_one(found) for is_one in _SAME):
        _refuse(name, inferred, found, "a cast of it to the type that you want")
    return inferred


def _is_number(kind: Any) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _is_whole(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


_SAME: tuple[Callable[[Any], bool], ...] = (
    lambda kind: kind in (pa.string(), pa.large_string(), pa.string_view()),
    lambda kind: kind in (pa.binary(), pa.large_binary(), pa.binary_view()),
    lambda kind: pa.types.is_timestamp(kind) or pa.types.is_date(kind),  # a day plus an interval
    pa.types.is_time,
)


def _refuse(name: str, inferred: Any, found: Any, remedy: str) -> NoReturn:
    raise TypeError(
        f"column {name!r} is {inferred} by Ibis's rules, but DuckDB gives {found}, which may not "
        f"fit in it; write {remedy}"
    )

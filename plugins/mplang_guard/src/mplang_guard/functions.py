"""Functions of guards: their types, their SQL, and what a row adds to them. Imports no engine.

A new one is an entry of :data:`FUNCTIONS`: programs may use it, and rules of owners name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mplang_analysis import Function, Words, any_type
from mplang_tables import is_number

SIZE = "abs({value})"
"""What a row adds to a number by the value of its column."""

SPREAD = "pow({value} - avg({value}) OVER ({group}), 2)"
"""What a row adds to a number by the distance of its value from the mean of its group."""


def _double(kind: str) -> str:
    return "double"


def _count(kind: str) -> str:
    return "int64"


def _sum(kind: str) -> str:
    if kind in ("float", "double"):
        return "double"
    if kind.startswith("decimal"):
        return f"decimal128(38, {kind.rstrip(')').rpartition(' ')[2]})"
    return "uint64" if kind.startswith("u") else "int64"


@dataclass(frozen=True, slots=True)
class GuardFunction:
    """Function that a guard computes for each group.

    Attributes:
        name: its name.
        sql: its SQL, of ``{value}``, a column, or of ``{unit}``, the column that tells whose rows
            these are.
        adds: SQL of what a row adds to it, as doubles that are not negative: ``max_share`` bounds
            the part of one unit. ``{value}`` is the column as a double, ``{group}`` its window.
            A function without any counts rows.
        gives: the type of the result, by that of the column.
        of: whether it is of columns of a type.
        of_rows: its SQL without a column; empty if it is of columns only.
        of_unit: whether it is of rows only, and rules name it of the unit.

    Example:
        >>> GuardFunction("var", "var_samp({value})", (SIZE, SPREAD)).gives("int64")
        'double'
    """

    name: str
    sql: str
    adds: tuple[str, ...] = ()
    gives: Callable[[str], str] = _double
    of: Callable[[str], bool] = is_number
    of_rows: str = ""
    of_unit: bool = False


def _all() -> Iterator[GuardFunction]:
    units = "count(DISTINCT {unit})"
    yield GuardFunction("count", "count({value})", (), _count, any_type, of_rows="count(*)")
    yield GuardFunction("units", units, (), _count, any_type, of_rows=units, of_unit=True)
    yield GuardFunction("sum", "sum({value})", (SIZE,), _sum)
    yield GuardFunction("mean", "avg({value})", (SIZE,))
    yield GuardFunction("std", "stddev_samp({value})", (SIZE, SPREAD))


FUNCTIONS = {each.name: each for each in _all()}
"""All functions of :func:`mplang_guard.aggregate`, by name."""

WORDS = Words([Function(each.name, each.of, each.of_unit) for each in FUNCTIONS.values()])
"""What rules of owners name; the entry point ``guard`` of the group ``mplang.words``."""

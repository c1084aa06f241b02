"""Dominance rule in SQL: no unit adds more than a given part of a number.

The rule with n = 1 of the (n, k) rules: Hundepool et al., Statistical Disclosure Control, 2012.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from mplang_analysis import WHOLE

from mplang_guard.functions import GuardFunction


class Number(NamedTuple):
    """A number of the result.

    Attributes:
        function: what it is.
        value: SQL of what it aggregates, which is NULL where there is none; empty if that is rows.
    """

    function: GuardFunction
    value: str


class Grouping(NamedTuple):
    """Grouping of rows.

    Attributes:
        rows: SQL of the rows: a table and perhaps a condition.
        unit: the column that tells whose rows these are, quoted.
        keys: the columns to group by, quoted.
    """

    rows: str
    unit: str
    keys: Sequence[str]


def dominance(
    grouping: Grouping, numbers: Sequence[Number], max_share: int, names: Collection[str]
) -> tuple[str, list[str]]:
    """Return SQL of rows that know the parts of units, and the conditions on their groups.

    Args:
        grouping: how rows are grouped.
        numbers: the numbers of the result.
        max_share: the largest part of each number that one unit adds, in millionths.
        names: the names of columns that are in use.

    Example:
        >>> from mplang_guard.functions import FUNCTIONS
        >>> grouping = Grouping('"rows"', '"id"', ())
        >>> rows, conditions = dominance(grouping, [Number(FUNCTIONS["units"], "")], 500_000, [])
        >>> print(rows, *conditions, sep="; ")
        "rows"; count(DISTINCT "id") * 500000 >= 1000000
    """
    rows, unit, keys = grouping
    units = [f"count(DISTINCT {unit}) * {max_share} >= {WHOLE}"]
    found = units if any(each.function.of_unit for each in numbers) else []
    contributions = dict.fromkeys(
        each for number in numbers for each in _contributions(number, keys)
    )
    if not contributions:
        return rows, found
    row, of_unit = (_unused(each, names) for each in ("row", "unit"))
    of_rows = [f'{each} AS "{row} {i}"' for i, each in enumerate(contributions)]
    window = f"PARTITION BY {', '.join([*keys, unit])}"
    of_units = [f'sum("{row} {i}") OVER ({window}) AS "{of_unit} {i}"' for i in range(len(of_rows))]
    inner = f"SELECT *, {', '.join(of_rows)} FROM {rows}"
    found += [
        _condition(f'"{row} {i}"', f'"{of_unit} {i}"', max_share) for i in range(len(of_rows))
    ]
    return f"(SELECT *, {', '.join(of_units)} FROM ({inner}))", found


def _contributions(number: Number, keys: Sequence[str]) -> Iterator[str]:
    """Yield SQL of what a row adds to a number, as a double that is not negative."""
    function, value = number
    if function.of_unit:
        return
    if not function.adds:
        yield f"CASE WHEN {value} IS NOT NULL THEN 1.0::DOUBLE END" if value else "1.0::DOUBLE"
    group = f"PARTITION BY {', '.join(keys)}" if keys else ""
    for each in function.adds:
        yield each.format(value=f"CAST({value} AS DOUBLE)", group=group)


def _condition(row: str, unit: str, max_share: int) -> str:
    """Return that no unit adds too much; a sum that is too large to be compared does not pass."""
    whole = f"sum({row})"
    return f"isfinite({WHOLE} * {whole}) AND {WHOLE} * max({unit}) <= {max_share} * {whole}"


def _unused(name: str, names: Collection[str]) -> str:
    """Return a name with which no name in use begins, however it is written."""
    while any(each.casefold().startswith(name) for each in names):
        name += "_"
    return name

"""Tables of people for guards, and comparisons of what noise gives of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mplang_core import TableType
from mplang_testing.tables import table_of, value_of

CHANCE = 1e-9  # that right results are taken for wrong ones, per comparison

Row = dict[str, Any]


@dataclass(frozen=True)
class People:
    """A table of rows of units, in groups; it is never changed, and gives others.

    Attributes:
        kind: its type.
        units: the columns that tell whose rows these are.
        by: the columns to group by.
        made: its rows.
    """

    kind: TableType
    units: Sequence[str]
    by: Sequence[str]
    made: tuple[Row, ...] = ()

    def __str__(self) -> str:
        return f"{len(self.made)} rows of {self.kind}"

    def rows(
        self, units: int, *, per_unit: int = 1, group: int = 0, start: int = 0, like: int = 0
    ) -> People:
        """Return it with rows of so many units more.

        Args:
            units: how many.
            per_unit: how many rows each has.
            group: the group of the rows, which has units of its own.
            start: the number of the first unit.
            like: the number that other columns stand for; small ones that differ by default.
        """
        made = [
            self._row(start + unit + 20 * group, group, like or 11 + (2 * unit + 3 * turn) % 7)
            for unit in range(units)
            for turn in range(per_unit)
        ]
        return replace(self, made=(*self.made, *made))

    def without_unit(self, rows: int) -> People:
        """Return it with rows of nobody, which count for no unit."""
        made = [{**self._row(0, 0, 3), **dict.fromkeys(self.units)} for _ in range(rows)]
        return replace(self, made=(*self.made, *made))

    def with_numbers(self, column: str, first: Sequence[int], rest: float | None) -> People:
        """Return it with other cells in a column.

        Args:
            column: the column.
            first: what the cells of the first rows stand for.
            rest: what those of the others stand for; ``None`` and ``NaN`` for themselves.
        """
        type, numbers = dict(self.kind.columns)[column], [*first, *[rest] * len(self.made)]
        made = [
            {**row, column: number if number is None or number != number else _number(type, number)}
            for row, number in zip(self.made, numbers, strict=False)
        ]
        return replace(self, made=tuple(made))

    def relabelled(self, unit: str) -> People:
        """Return it with units that have changed places within their groups."""
        cells: dict[int, Any] = {}
        for group in self._groups():
            labels = list(dict.fromkeys(self.made[i][unit] for i in group))
            other = dict(zip(labels, reversed(labels), strict=True))
            cells |= {i: other[self.made[i][unit]] for i in group}
        return self._with(unit, cells)

    def exchanged(self, column: str) -> People:
        """Return it with each cell of a column in the next row, within each group."""
        cells: dict[int, Any] = {}
        for group in self._groups():
            before = [group[-1], *group[:-1]]
            cells |= {i: self.made[j][column] for i, j in zip(group, before, strict=True)}
        return self._with(column, cells)

    def moved(self, column: str) -> People:
        """Return it with the same sums of a column, and other extremes."""
        cells: dict[int, Any] = {}
        for group in self._groups():
            least, *_, most = sorted(group, key=lambda i: self.made[i][column])
            cells |= {least: self.made[least][column] - 2, most: self.made[most][column] + 2}
        return self._with(column, cells)

    def regrouped(self, column: str, last: int, group: int) -> People:
        """Return it with the last rows in another group by one column, as by the others before."""
        cell = value_of(dict(self.kind.columns)[column], group)
        return self._with(column, dict.fromkeys(range(len(self.made))[-last:], cell))

    def table(self) -> Any:
        """Return it as an Arrow table."""
        columns = {name: [row[name] for row in self.made] for name, _ in self.kind.columns}
        return table_of(self.kind, columns)

    def _row(self, unit: int, group: int, like: int) -> Row:
        row = {name: _number(type, like) for name, type in self.kind.columns}
        row |= {name: value_of(dict(self.kind.columns)[name], group) for name in self.by}
        return row | {name: value_of(dict(self.kind.columns)[name], unit) for name in self.units}

    def _groups(self) -> list[list[int]]:
        found: dict[Any, list[int]] = {}
        for i, row in enumerate(self.made):
            found.setdefault(tuple(row[name] for name in self.by), []).append(i)
        return list(found.values())

    def _with(self, column: str, cells: dict[int, Any]) -> People:
        made = [{**row, column: cells.get(i, row[column])} for i, row in enumerate(self.made)]
        return replace(self, made=tuple(made))


def _number(type: str, number: float) -> Any:
    """Return a number in a column that holds it, or the value that stands for a small one."""
    if type in ("float", "double"):
        return float(number)
    if type.removeprefix("u") in ("int32", "int64"):
        return int(number)
    return value_of(type, int(number))


# -- noise


def numbers_of(results: Sequence[Any]) -> list[float]:
    """Return all numbers of results, in order."""
    found: list[float] = []
    for result in results:
        cells = (
            [cell for row in result.to_pylist() for cell in row.values()]
            if hasattr(result, "to_pylist")
            else np.asarray(result).ravel().tolist()
        )
        found += [float(cell) for cell in cells if isinstance(cell, int | float)]
    return found


def noise_tells(one: Any, other: Any, epsilon: float, delta: float) -> str:
    """Return an event that tells two tables apart by more than epsilon and delta, or nothing.

    Args:
        one: the numbers of each run on one table.
        other: likewise.
        epsilon: how much an event may be likelier.
        delta: how much it may be likelier besides.
    """
    if one.shape != other.shape:
        return f"{one.shape[1]} numbers with it, {other.shape[1]} without"
    for j in range(one.shape[1]):
        both = np.unique(np.concatenate([one[:, j], other[:, j]]))
        for bound in np.quantile(both, np.linspace(0, 1, 21)):
            for sign, name in ((1, "at most"), (-1, "at least")):
                p, q = (float((sign * x[:, j] <= sign * bound).mean()) for x in (one, other))
                for a, b in ((p, q), (q, p)):
                    low, high = _low(a, len(one)), 1 - _low(1 - b, len(one))
                    if low > math.exp(epsilon) * high + delta:
                        return (
                            f"number {j} is {name} {bound:g} in {p:.0%} of {len(one)} runs with "
                            f"it, in {q:.0%} without"
                        )
    return ""


def noise_differs(one: Any, other: Any) -> str:
    """Return how the numbers of runs on two tables differ by more than chance, or nothing."""
    if one.shape != other.shape:
        return f"{one.shape[1]} numbers, and {other.shape[1]}"
    limit = math.sqrt(-math.log(CHANCE / 2) / len(one))  # Kolmogorov and Smirnov's test
    for j in range(one.shape[1]):
        bounds = np.concatenate([one[:, j], other[:, j]])
        parts = [np.searchsorted(np.sort(x[:, j]), bounds, side="right") for x in (one, other)]
        if np.abs(parts[0] - parts[1]).max() / len(one) > limit:
            middles = [f"{np.median(x[:, j]):g}" for x in (one, other)]
            return f"number {j} with a median of {middles[0]}, and of {middles[1]}"
    return ""


def _low(part: float, runs: int) -> float:
    """Return a probability below which an event is not, by Chernoff's bound of its frequency."""
    low, high = 0.0, part
    for _ in range(40):
        middle = (low + high) / 2
        far = _divergence(part, middle) * runs > -math.log(CHANCE)
        low, high = (middle, high) if far else (low, middle)
    return low


def _divergence(p: float, q: float) -> float:
    terms = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) if b else math.inf for a, b in terms if a)

"""Model of Ibis's aggregates and windows in plain Python, by its documentation.

Rows are dictionaries; a null is None. An aggregate is a function of rows.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Row = dict[str, Any]
Aggregate = Callable[[Sequence[Row]], Any]


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Any of some values, as of an arbitrary one."""

    values: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return other in self.values if self.values else other is None

    __hash__ = None  # type: ignore[assignment]


def ordered(rows: Iterable[Row], *keys: tuple[str, bool, bool]) -> list[Row]:
    """Return rows in an order: by columns, whether each descends, and whether nulls are first."""
    found = list(rows)
    for name, descends, first in reversed(keys):
        there = [row for row in found if row[name] is not None]
        absent = [row for row in found if row[name] is None]
        there.sort(key=lambda row: row[name], reverse=descends)
        if descends:  # stable, too
            there = _stable_reverse(there, name)
        found = absent + there if first else there + absent
    return found


def _stable_reverse(rows: list[Row], name: str) -> list[Row]:
    return sorted(rows, key=lambda row: -row[name]) if rows else rows


def present(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of a column that are not null."""
    return [row[name] for row in rows if row[name] is not None]


def of_present(fn: Callable[[list[Any]], Any], name: str, least: int = 1) -> Aggregate:
    """Return an aggregate of the values that are there; null of too few."""

    def aggregate(rows: Sequence[Row]) -> Any:
        found = present(rows, name)
        return fn(found) if len(found) >= least else None

    return aggregate


def where(aggregate: Aggregate, test: Callable[[Row], Any]) -> Aggregate:
    """Return an aggregate of some rows."""
    return lambda rows: aggregate([row for row in rows if test(row)])


def by(aggregate: Aggregate, *keys: tuple[str, bool, bool]) -> Aggregate:
    """Return an aggregate of rows in an order."""
    return lambda rows: aggregate(ordered(rows, *keys))


def at(name: str, place: int, *, nulls: bool) -> Aggregate:
    """Return the first (0) or the last (-1) value, of those that are not null or of all."""

    def aggregate(rows: Sequence[Row]) -> Any:
        found = [row[name] for row in rows] if nulls else present(rows, name)
        return found[place] if found else None

    return aggregate


def extreme(name: str, key: str, choose: Callable[..., Any]) -> Aggregate:
    """Return the value of a column where another one is least or greatest."""

    def aggregate(rows: Sequence[Row]) -> Any:
        there = [row for row in rows if row[key] is not None]
        return choose(there, key=lambda row: row[key])[name] if there else None

    return aggregate


def joined(name: str, separator: str) -> Aggregate:
    """Return the texts of a column, joined."""
    return of_present(lambda found: separator.join(map(str, found)), name)


def quantile(fraction: float) -> Callable[[list[Any]], Any]:
    """Return a quantile, interpolated linearly."""

    def of(found: list[Any]) -> float:
        found = sorted(found)
        place = fraction * (len(found) - 1)
        low = math.floor(place)
        high = min(low + 1, len(found) - 1)
        return float(found[low] + (found[high] - found[low]) * (place - low))

    return of


def modes(found: list[Any]) -> OneOf:
    """Return the most frequent values."""
    return OneOf(tuple(statistics.multimode(found)))


def kurtosis_pop(found: list[float]) -> float | None:
    """Return the excess kurtosis."""
    mean = sum(found) / len(found)
    second = sum((x - mean) ** 2 for x in found) / len(found)
    fourth = sum((x - mean) ** 4 for x in found) / len(found)
    return fourth / second**2 - 3 if second else None


def covariance(a: str, b: str, less: int) -> Aggregate:
    """Return a covariance, of a sample (1) or of all (0)."""

    def aggregate(rows: Sequence[Row]) -> Any:
        both = [(row[a], row[b]) for row in rows if row[a] is not None and row[b] is not None]
        if len(both) <= less:
            return None
        mean_a = sum(x for x, _ in both) / len(both)
        mean_b = sum(y for _, y in both) / len(both)
        return sum((x - mean_a) * (y - mean_b) for x, y in both) / (len(both) - less)

    return aggregate


def framed(
    rows: Sequence[Row],
    aggregate: Aggregate,
    frame: Callable[[Sequence[Row], int], Sequence[Row]],
    order: Sequence[tuple[str, bool, bool]],
    group: str | None = None,
) -> dict[Any, Any]:
    """Return the value of an aggregate over a window, by the column ``id`` of each row."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[group] if group else None, []).append(row)
    found = {}
    for each in groups.values():
        each = ordered(each, *order)
        for i, row in enumerate(each):
            found[row["id"]] = aggregate(frame(each, i))
    return found

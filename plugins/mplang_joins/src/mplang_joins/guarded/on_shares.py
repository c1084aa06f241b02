"""Computation of a guard on shares: a function of arrays, which each member traces itself."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import reduce

import jax.numpy as jnp
from jax import Array
from mplang_analysis import WHOLE

from mplang_joins.across.fitting import by_row, over_rows
from mplang_joins.aligned import in_first_rows
from mplang_joins.guarded.form import FLOAT_DIGITS, Part, UnitAggregate, UnitForm, is_float


def guard(
    *sides: Array, forms: Sequence[UnitForm], wanted: Sequence[UnitAggregate], k: int,
    max_share: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """Return aggregates of the units that all sides have, of those groups that may be told.

    A number of a group is a sum over units: of what one owner has of a unit, if all others have the
    unit in their part of the group. So a unit counts once, however many rows others have of it.

    Args:
        *sides: what each owner made of its units.
        forms: the form of each of them.
        wanted: the aggregates.
        k: how many units each number is made of, at least.
        max_share: the largest part of one unit, in millionths; ``None`` if nothing bounds it.

    Returns:
        Whether each group is told, then the aggregates, zero where it is not; ``[groups]``.
    """
    units = _Units(sides, forms)
    tells = reduce(operator.and_, _conditions(units, wanted, k, max_share))
    numbers = [jnp.where(tells, _number(units, each), 0) for each in wanted]
    return (tells, *numbers)


def _conditions(
    units: _Units, wanted: Sequence[UnitAggregate], k: int, max_share: int | None
) -> Iterator[Array]:
    """Yield for each group what holds if it may be told."""
    yield units.total() >= k
    columns = [(each.side, each.column) for each in wanted if each.function != "units"]
    for side, column in dict.fromkeys(columns):
        yield units.total(side, "has", column) >= k
    if max_share is None:
        return
    for each in dict.fromkeys(wanted):
        at = () if each.function == "units" else (each.side, _part(each), each.column)
        yield units.largest(*at) * WHOLE <= units.total(*at) * max_share


def _part(wanted: UnitAggregate) -> Part:
    """Return what a unit adds to an aggregate."""
    return "count" if wanted.function == "count" else "size"


def _number(units: _Units, wanted: UnitAggregate) -> Array:
    if wanted.function == "units":
        return units.total()
    if wanted.function == "count":
        return units.total(wanted.side, "count", wanted.column)
    total = units.total(wanted.side, "sum", wanted.column)
    if wanted.function == "sum":
        return total
    count = units.total(wanted.side, "count", wanted.column)
    if is_float(units.type_of(wanted)):
        total = total.astype("float64") * 10.0**-FLOAT_DIGITS
    return total.astype("float64") / jnp.maximum(count, 1).astype("float64")


class _Units:
    """Numbers of all sides for their common units, in the rows of the first side."""

    def __init__(self, sides: Sequence[Array], forms: Sequence[UnitForm]) -> None:
        self._forms = forms
        self._planes = in_first_rows([(x[0], [*x[1:]]) for x in sides])

    def type_of(self, wanted: UnitAggregate) -> str:
        """Return the type of the column of an aggregate."""
        return self._forms[wanted.side].type_of(wanted.column)

    def total(self, side: int = 0, part: Part | None = None, column: str = "") -> Array:
        """Return the sum of a number over units, by group; without one the number of units."""
        *others, last = self._factors(side, part, column)
        made: Array = over_rows(reduce(by_row, others), last)
        return made

    def largest(self, side: int = 0, part: Part | None = None, column: str = "") -> Array:
        """Return the largest number of a unit, by group."""
        every: Array = reduce(by_row, self._factors(side, part, column))
        return every.max(axis=1)

    def _factors(self, side: int, part: Part | None, column: str) -> list[Array]:
        """Return for each side its number by group and unit, or whether the unit is there."""
        firsts = [1] * len(self._forms)
        if part is not None:
            firsts[side] = self._forms[side].first(part, column)
        return [
            jnp.stack(planes[first - 1 : first - 1 + form.groups])
            for planes, form, first in zip(self._planes, self._forms, firsts, strict=True)
        ]

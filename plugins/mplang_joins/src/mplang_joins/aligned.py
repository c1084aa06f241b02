"""The join itself: a function of arrays, which JAX traces for an SPU."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from mplang_joins.joined import How, Side


class Aligned(NamedTuple):
    """Rows of several sides, aligned by key.

    Attributes:
        columns: the numbers by column, zero where a row is not valid.
        valid: whether a row is there.
        found: of a left join, for each side but the first whether it has the row's key.
    """

    columns: Mapping[str, Any]
    valid: Any
    found: Sequence[Any]


def align(sides: Sequence[Side], how: How) -> Aligned:
    """Bring the rows of equal keys together.

    All sides' rows are sorted once, by token and side. So the rows of one key stand one behind the
    other, in the order of sides; where the first side's row stands, the others' numbers are fetched
    from the rows behind it. The tokens of a key differ by the numbers of sides, those of two keys
    by more, or by chance.

    Args:
        sides: the tables; the first one leads.
        how: ``inner`` (rows whose key is at all sides), ``left`` (all rows of the first side),
            ``semi`` (its rows whose key is at all other sides) or ``anti`` (at none of them).

    Returns:
        Arrays of the length of all sides together.
    """
    rows = _Sorted.of(sides)
    hits = [rows.hits(i, everywhere=how in ("inner", "semi")) for i in range(1, len(sides))]
    found = [_any(each.values()) for each in hits]
    if how in ("inner", "semi"):
        valid = _all(found)
    else:
        found = [each & rows.leads for each in found]
        valid = rows.leads if how == "left" else rows.leads & ~_any(found)
    columns = {name: jnp.where(valid, rows.column(0, name), 0) for name in sides[0].columns}
    for i, side in enumerate(sides[1:], 1) if how in ("inner", "left") else ():
        here = valid if how == "inner" else found[i - 1]
        for name in side.columns:
            columns[name] = _fetched(rows.column(i, name), hits[i - 1], here)
    return Aligned(columns, valid, found if how == "left" else [])


@dataclass(frozen=True, slots=True)
class _Sorted:
    """All sides' rows, in the order of tokens.

    Columns of one element type of different sides share an array, as a row is of one side.
    """

    tokens: Any
    leads: Any  # whether a row is one of the first side; None if the join does not ask for it
    arrays: Mapping[tuple[str, int], Any]
    places: Mapping[tuple[int, str], tuple[str, int]]

    @classmethod
    def of(cls, sides: Sequence[Side]) -> _Sorted:
        places: dict[tuple[int, str], tuple[str, int]] = {}
        for i, side in enumerate(sides):
            taken = Counter[str]()
            for name, values in side.columns.items():
                dtype = str(values.dtype)
                places[i, name] = dtype, taken[dtype]
                taken[dtype] += 1
        arrays = {slot: _together(sides, places, slot) for slot in dict.fromkeys(places.values())}
        leads = _leads(sides)
        tokens = jnp.concatenate([side.tokens for side in sides])
        operands = (tokens, *leads, *arrays.values())
        tokens, *moved = lax.sort(operands, num_keys=1, is_stable=False)
        first = moved.pop(0) if leads else None
        return cls(tokens, first, dict(zip(arrays, moved, strict=True)), places)

    def column(self, side: int, name: str) -> Any:
        """Return the array in which the rows of a side have a column."""
        return self.arrays[self.places[side, name]]

    def hits(self, side: int, *, everywhere: bool) -> Mapping[int, Any]:
        """Return by how many rows behind a row of the first side whether a side's row is there.

        Args:
            side: the number of the side.
            everywhere: whether only keys count that are at all sides.
        """
        steps = [side] if everywhere else range(1, side + 1)
        return {step: _behind(self.tokens, step) - self.tokens == side for step in steps}


def _leads(sides: Sequence[Side]) -> list[Any]:
    """Return which rows are those of the first side, if the join asks for it."""
    if sides[0].there is None:
        return []
    others = [jnp.zeros(side.tokens.shape, bool) for side in sides[1:]]
    return [jnp.concatenate([sides[0].there, *others])]


def _together(sides: Sequence[Side], places: Mapping[Any, Any], slot: tuple[str, int]) -> Any:
    """Return one array for the columns of all sides that have a place in it."""
    names = {i: name for (i, name), place in places.items() if place == slot}
    parts = [
        side.columns[names[i]] if i in names else jnp.zeros(side.tokens.shape, slot[0])
        for i, side in enumerate(sides)
    ]
    return jnp.concatenate(parts)


def _behind(values: Any, step: int) -> Any:
    """Return for each row the value some rows behind it, zero at the end."""
    return jnp.concatenate([values[step:], jnp.zeros((step,), values.dtype)])


def _fetched(values: Any, hits: Mapping[int, Any], here: Any) -> Any:
    """Return what one of the rows behind has, zero where there is none."""
    if len(hits) == 1:
        (step,) = hits
        return jnp.where(here, _behind(values, step), 0)
    picked = [jnp.where(hit & here, _behind(values, step), 0) for step, hit in hits.items()]
    return reduce(operator.add, picked)


def _any(bools: Any) -> Any:
    return reduce(operator.or_, bools)


def _all(bools: Any) -> Any:
    return reduce(operator.and_, bools)

"""The join itself: a function of arrays, which JAX traces for an SPU."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import Array, lax

from mplang_joins.rows import How, Side

THERE = ""
"""What is called as no column is: whether a row is there."""

Slot: TypeAlias = tuple[str, int]
"""An array that columns of different sides share: its element type, and a number."""


class Aligned(NamedTuple):
    """Rows of several sides, aligned by key.

    Attributes:
        columns: the numbers by column, zero where a row is not valid.
        valid: whether a row is there.
        matched: of a left join, for each side but the first whether it has the row's key.
    """

    columns: Mapping[str, Array]
    valid: Array
    matched: Sequence[Array]


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
    rows = Sorted.of(sides)
    hits = [rows.hits(i, everywhere=how in ("inner", "semi")) for i in range(1, len(sides))]
    matched = [any_of(each.values()) for each in hits]
    if how in ("inner", "semi"):
        valid = _all_of(matched)
    else:
        leads = rows.column(0, THERE)
        matched = [each & leads for each in matched]
        valid = leads if how == "left" else leads & ~any_of(matched)
    columns = {name: jnp.where(valid, rows.column(0, name), 0) for name in sides[0].columns}
    for i, side in enumerate(sides[1:], 1) if how in ("inner", "left") else ():
        here = valid if how == "inner" else matched[i - 1]
        for name in side.columns:
            columns[name] = fetched(rows.column(i, name), hits[i - 1], here)
    return Aligned(columns, valid, matched if how == "left" else [])


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of all sides, in the order of tokens.

    Columns of one element type of different sides share an array, as a row is of one side.
    """

    tokens: Array
    arrays: Mapping[Slot, Array]
    slots: Mapping[tuple[int, str], Slot]

    @classmethod
    def of(cls, sides: Sequence[Side]) -> Sorted:
        """Sort the rows of some sides."""
        columns = [_carried(side) for side in sides]
        slots: dict[tuple[int, str], Slot] = {}
        for i, each in enumerate(columns):
            taken = Counter[str]()
            for name, values in each.items():
                dtype = str(values.dtype)
                slots[i, name] = dtype, taken[dtype]
                taken[dtype] += 1
        tokens = [side.tokens for side in sides]
        arrays = {}
        for slot in dict.fromkeys(slots.values()):
            parts = [jnp.zeros(each.shape, slot[0]) for each in tokens]
            for (i, name), used in slots.items():
                if used == slot:
                    parts[i] = columns[i][name]
            arrays[slot] = jnp.concatenate(parts)
        operands = (jnp.concatenate(tokens), *arrays.values())
        in_order, *moved = lax.sort(operands, num_keys=1, is_stable=False)
        return cls(in_order, dict(zip(arrays, moved, strict=True)), slots)

    def column(self, side: int, name: str) -> Array:
        """Return the array in which the rows of a side have a column."""
        return self.arrays[self.slots[side, name]]

    def hits(self, side: int, *, everywhere: bool) -> Mapping[int, Array]:
        """Return by how many rows behind a row of the first side whether a side's row is there.

        Args:
            side: the number of the side.
            everywhere: whether only keys count that are at all sides.
        """
        steps = [side] if everywhere else range(1, side + 1)
        return {step: _behind(self.tokens, step) - self.tokens == side for step in steps}


def in_first_rows(sides: Sequence[tuple[Array, Sequence[Array]]]) -> list[list[Array]]:
    """Return the numbers of each side in the rows of the first one, for keys that all sides have.

    Those of the first side are as they are; those of others are zero where a side lacks the key.

    Args:
        sides: tokens and numbers of each side.
    """
    flat = [
        Side(tokens, None, {str(i): each for i, each in enumerate(numbers)})
        for tokens, numbers in sides
    ]
    rows = Sorted.of(flat)
    made = [[rows.column(0, name) for name in flat[0].columns]]
    for i, side in enumerate(flat[1:], 1):
        hits = rows.hits(i, everywhere=True)
        here = any_of(hits.values())
        made.append([fetched(rows.column(i, name), hits, here) for name in side.columns])
    return made


def _carried(side: Side) -> Mapping[str, Array]:
    """Return what moves with the tokens of a side."""
    return side.columns if side.there is None else {**side.columns, THERE: side.there}


def _behind(values: Array, step: int) -> Array:
    """Return for each row the value some rows behind it, zero at the end."""
    return jnp.concatenate([values[step:], jnp.zeros((step,), values.dtype)])


def fetched(values: Array, hits: Mapping[int, Array], here: Array) -> Array:
    """Return what one of the rows behind has, zero where there is none."""
    if len(hits) == 1:
        (step,) = hits
        return jnp.where(here, _behind(values, step), 0)
    picked = [jnp.where(hit & here, _behind(values, step), 0) for step, hit in hits.items()]
    return reduce(operator.add, picked)


def any_of(bools: Iterable[Array]) -> Array:
    """Return where one of some arrays is true."""
    return reduce(operator.or_, bools)


def _all_of(bools: Iterable[Array]) -> Array:
    return reduce(operator.and_, bools)

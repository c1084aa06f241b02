"""Encrypted tensors: a ciphertext for each column, whose slots are the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mplang_he.spans import Array


class ColumnsRefusedError(ValueError):
    """Raised if columns of ciphertexts cannot do something."""


def mixes_rows(what: str) -> NoReturn:
    """Refuse what needs numbers of several rows at once."""
    raise ColumnsRefusedError(
        f"{what}: rows are in the slots of a ciphertext, and stay in theirs. Sum over rows at the "
        "key's holder, or put rows along another axis"
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """An encrypted tensor.

    Attributes:
        cells: the columns, in an array of the tensor's shape without the axis of rows.
        axis: the axis of rows.
        rows: how many there are.
    """

    cells: Array
    axis: int
    rows: int

    @classmethod
    def of(cls, cells: Sequence[Any], shape: Sequence[int]) -> Columns:
        """Return a tensor with its rows along the first axis."""
        made = np.empty(math.prod(shape[1:]), object)
        made[:] = cells
        return cls(made.reshape(tuple(shape[1:])), 0, shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return insert(self.cells.shape, self.axis, self.rows)

    def map(self, function: Callable[..., Any]) -> Columns:
        """Apply a function to each column."""
        return self.like(map(function, self.cells.ravel().tolist()))

    def like(self, cells: Iterator[Any] | Sequence[Any]) -> Columns:
        """Return other columns in the same places."""
        return Columns(_filled(cells, self.cells.shape), self.axis, self.rows)

    def reshape(self, shape: Sequence[int]) -> Columns:
        """Return it in another shape, in which rows are an axis still."""
        before = math.prod(self.cells.shape[: self.axis])
        for axis, size in enumerate(shape):
            if size == self.rows and math.prod(shape[:axis]) == before:
                return Columns(self.cells.reshape(without(shape, axis)), axis, self.rows)
        mixes_rows("it splits or joins the axis of rows")

    def transpose(self, order: Sequence[int]) -> Columns:
        """Return it with its axes in another order."""
        kept = [i - (i > self.axis) for i in order if i != self.axis]
        return Columns(self.cells.transpose(kept), list(order).index(self.axis), self.rows)

    def broadcast(self, shape: Sequence[int], dimensions: Sequence[int]) -> Columns:
        """Return it with further axes, and repeated along those of size 1."""
        order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
        if order != list(range(len(order))):
            return self.transpose(order).broadcast(shape, [dimensions[i] for i in order])
        axis = dimensions[self.axis]
        if shape[axis] != self.rows:
            mixes_rows("it repeats a row")
        sizes = [1] * len(shape)
        for i, size in zip(dimensions, self.shape, strict=True):
            sizes[i] = size
        cells = self.cells.reshape(without(sizes, axis))
        return Columns(np.broadcast_to(cells, without(shape, axis)), axis, self.rows)

    def slice(self, index: Sequence[slice]) -> Columns:
        """Return a part of the columns."""
        if index[self.axis] != slice(0, self.rows, 1):
            mixes_rows("it takes some of the rows")
        return Columns(self.cells[without(index, self.axis)], self.axis, self.rows)

    def reverse(self, axes: Sequence[int]) -> Columns:
        """Return it with columns in the other order along some axes."""
        if self.axis in axes:
            mixes_rows("it changes the order of rows")
        kept = tuple(i - (i > self.axis) for i in axes)
        return Columns(np.flip(self.cells, kept), self.axis, self.rows)

    def reduce(self, axes: Sequence[int], total: Callable[[Any], Any]) -> Columns:
        """Return the totals along some axes."""
        if self.axis in axes:
            mixes_rows("it adds over rows")
        gone = [i - (i > self.axis) for i in axes]
        kept = [i for i in range(self.cells.ndim) if i not in gone]
        moved = self.cells.transpose([*kept, *gone])
        shape = moved.shape[: len(kept)]
        flat = moved.reshape(*shape, math.prod(moved.shape[len(kept) :]))
        cells = _filled((total(flat[index]) for index in np.ndindex(shape)), shape)
        return Columns(cells, self.axis - sum(i < self.axis for i in axes), self.rows)


def concatenated(parts: Sequence[Columns], axis: int) -> Columns:
    """Return tensors one behind the other along an axis."""
    first = parts[0]
    if axis == first.axis or any(part.axis != first.axis for part in parts):
        mixes_rows("it puts rows behind rows")
    cells = np.concatenate([part.cells for part in parts], axis - (axis > first.axis))
    return Columns(cells, first.axis, first.rows)


def plain_columns(values: Array, axis: int) -> Iterator[Any]:
    """Yield the numbers of each column: one, if it is the same in all rows, or one for each row."""
    for index in np.ndindex(without(values.shape, axis)):
        yield plain_column(values, axis, index)


def plain_column(values: Array, axis: int, index: Sequence[int]) -> Any:
    """Return the numbers of one column."""
    same = values.strides[axis] == 0 or values.shape[axis] == 1
    return values[insert(index, axis, 0 if same else slice(None))]


def dot(
    x: Columns, y: Columns | Array, axes: Sequence[str], total: Callable[[Iterator[Any]], Any],
    multiply: Callable[[Any, Any], Any],
) -> Columns:  # fmt: skip
    """Return sums of products, as Einstein's notation says.

    Args:
        x: an encrypted tensor.
        y: another one, or plain numbers.
        axes: a letter for each axis of ``x``, of ``y``, and of the result.
        total: adds columns.
        multiply: multiplies two columns, or a column by plain numbers.
    """
    mine, others, gives = axes
    row = mine[x.axis]
    if row not in gives:
        mixes_rows("it adds over rows")
    if isinstance(y, Columns) and others[y.axis] != row:
        mixes_rows("it multiplies rows by rows")
    sizes = dict(zip(mine + others, (*x.shape, *y.shape), strict=True))
    summed = [letter for letter in mine if letter not in gives]
    inner = [dict(zip(summed, at, strict=True)) for at in _all(summed, sizes)]
    there = [letter for letter in gives if letter != row]

    def terms(at: dict[str, int]) -> Iterator[Any]:
        for each in inner:
            where = at | each
            a = x.cells[tuple(where[letter] for letter in mine if letter != row)]
            if isinstance(y, Columns):
                b = y.cells[tuple(where[letter] for letter in others if letter != row)]
            elif row in others:
                index = [where[letter] for letter in others if letter != row]
                b = plain_column(y, others.index(row), index)
            else:
                b = y[tuple(where[letter] for letter in others)]
            yield multiply(a, b)

    made = (total(terms(dict(zip(there, at, strict=True)))) for at in _all(there, sizes))
    shape = tuple(sizes[letter] for letter in there)
    return Columns(_filled(made, shape), gives.index(row), x.rows)


def _all(letters: Sequence[str], sizes: dict[str, int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(sizes[letter]) for letter in letters))


def _filled(cells: Iterator[Any] | Sequence[Any], shape: tuple[int, ...]) -> Array:
    made = np.empty(math.prod(shape), object)
    for i, cell in enumerate(cells):
        made[i] = cell
    return made.reshape(shape)


def without(items: Sequence[Any], axis: int) -> tuple[Any, ...]:
    """Return items but for one."""
    return (*items[:axis], *items[axis + 1 :])


def insert(items: Sequence[Any], axis: int, item: Any) -> tuple[Any, ...]:
    """Return items with one more."""
    return (*items[:axis], item, *items[axis:])

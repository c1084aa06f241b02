"""Decisions about the order of elements: sorts, the places of extremes, ``top_k``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mplang_spu.reference_check.op_trace import OpTrace, OpVerdict, difference, larger
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.roundings import TIE


def check_sort(case: OpTrace) -> list[OpVerdict]:
    """Check that rows are permuted as a whole, and that all keys are in order.

    Args:
        case: a sort.

    Returns:
        The same verdict for each result.
    """
    (along,) = case.op.dimensions
    before, after = _rows(case.found_in, along), _rows(case.found, along)
    exact_before, exact_after = _rows(case.exact_in, along), _rows(case.exact, along)
    is_torn = ~np.all(_ordered(before) == _ordered(after), axis=(0, 2))
    here, there = _sources(before, after), _sources(exact_before, exact_after)
    wrong, is_open = np.zeros(here.shape, bool), np.ones(here.shape, bool)
    pair = np.zeros((2, *here.shape))
    for key in range(case.op.keys):

        def two(ins: Sequence[Array], key: int = key) -> Array:
            column = _rows(ins, along)[key]
            return np.stack([np.take_along_axis(column, at, -1) for at in (here, there)])

        keys = two(case.exact_in)
        is_late = is_open & _is_apart(case, two)
        wrong, pair = wrong | is_late, np.where(is_late, keys, pair)
        is_open &= np.abs(difference(*keys)) <= TIE * larger(*keys)
    wrong &= np.any(np.abs(difference(after, exact_after)) > case.band, axis=0)
    wrong |= is_torn[:, None]
    shape = np.moveaxis(case.found[0], along, -1).shape
    wrong, left, right = (np.moveaxis(x.reshape(shape), -1, along) for x in (wrong, *pair))
    return [OpVerdict(wrong, (left, right))] * len(case.found)


def _is_apart(case: OpTrace, two: Callable[[Sequence[Array]], Array]) -> Array:
    """Return where two elements of the operands are apart in whatever way they are rounded."""

    def gap(ins: Sequence[Array], _: Sequence[Array]) -> Array:
        one, other = two(ins)
        return difference(one, other)

    return case.is_apart(gap, larger(*two(case.exact_in)))


def _rows(values: Sequence[Array], along: int) -> Array:
    """Return an array of columns × lanes × elements."""
    columns = [np.moveaxis(each, along, -1).astype(np.float64) for each in values]
    return np.stack([each.reshape(-1, each.shape[-1]) for each in columns])


def _order(rows: Array) -> Array:
    """Return the lexicographic order of each lane."""
    return np.stack([np.lexsort(rows[:, lane]) for lane in range(rows.shape[1])])


def _ordered(rows: Array) -> Array:
    return np.take_along_axis(rows, _order(rows)[None], axis=2)


def _sources(before: Array, after: Array) -> Array:
    """Return where each row of a sort comes from."""
    ranks = np.argsort(_order(after), axis=-1)
    return np.take_along_axis(_order(before), ranks, axis=-1)


def check_extreme(case: OpTrace) -> list[OpVerdict]:
    """Check that the element at an index is as extreme as the best one.

    Args:
        case: an argmax or argmin, of which the index is the second result.

    Returns:
        The same verdict for the element and its index.
    """
    along, shape = case.op.dimensions, case.found[1].shape
    places = _lanes(case.exact_in[1], along)
    named = [x[1].reshape(-1, 1) == places for x in (case.found, case.exact)]
    lane, ats = np.arange(len(places)), [np.argmax(each, axis=1) for each in named]

    def two(ins: Sequence[Array]) -> Array:
        column = _lanes(ins[0], along)
        return np.stack([column[lane, at].reshape(shape) for at in ats])

    is_none = ~np.any(named[0], axis=1).reshape(shape)
    left, right = two(case.exact_in)
    return [OpVerdict(is_none | _is_apart(case, two), (left, right))] * 2


def _lanes(value: Array, dimensions: Sequence[int]) -> Array:
    moved = np.moveaxis(value, dimensions, range(-len(dimensions), 0))
    kept = value.ndim - len(dimensions)
    return moved.reshape(int(np.prod(moved.shape[:kept])), -1)


def check_largest(case: OpTrace) -> list[OpVerdict]:
    """Check that the elements at the indices are as large as the largest ones.

    Args:
        case: a ``top_k``, of which the indices are the second result.

    Returns:
        The same verdict for the elements and their indices.
    """
    size, (at, best) = case.exact_in[0].shape[-1], (case.found[1], case.exact[1])
    in_turn = np.sort(at, axis=-1)
    is_twice = np.any(in_turn[..., 1:] == in_turn[..., :-1], axis=-1, keepdims=True)
    inside = np.clip(at, 0, size - 1)

    def two(ins: Sequence[Array]) -> Array:
        return np.stack([np.take_along_axis(ins[0], each, -1) for each in (inside, best)])

    left, right = two(case.exact_in)
    wrong = (inside != at) | is_twice | _is_apart(case, two)
    return [OpVerdict(wrong, (left, right))] * 2

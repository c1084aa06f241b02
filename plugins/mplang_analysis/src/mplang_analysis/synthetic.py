"""Synthetic numbers within an interval: ends, zeros, ties, and numbers between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from mplang_analysis.interval import Interval
from mplang_core import DType, TensorType

Draw: TypeAlias = Literal["mixed", "largest"]
"""What is drawn: some of everything, or most of them the largest, and some the smallest."""

USUAL = Interval(-4, 4)
"""Interval of numbers of which nothing is declared."""

SPECIAL, TIED = 0.3, 0.5  # part that is an end or 0, and from there part that is like another one


def numbers_within(
    kind: TensorType, within: Interval, random: np.random.Generator, draw: Draw = "mixed"
) -> np.ndarray[Any, Any]:
    """Return synthetic numbers.

    Args:
        kind: their type.
        within: their interval; the usual one, if it is not known.
        random: where they are drawn from: the same seed gives the same numbers.
        draw: what is drawn.

    Returns:
        An array. Of a complex type both parts are within the interval.

    Example:
        >>> random = np.random.default_rng(0)
        >>> found = numbers_within(TensorType("f32", (100,)), Interval(0, 5), random)
        >>> float(found.min()), float(found.max()), len(set(found.tolist())) < 100
        (0.0, 5.0, True)
    """
    dtype, size = kind.dtype, kind.size
    if dtype is DType.BOOL:
        return random.integers(0, 2, kind.shape).astype(bool)
    if dtype.value.startswith("c"):
        part = TensorType("f64", kind.shape)
        real, imaginary = (numbers_within(part, within, random, draw) for _ in range(2))
        return (real + 1j * imaginary).astype(dtype.numpy)
    low, high = _ends(dtype, within)
    if draw == "largest":
        return _of_kind(_largest(kind.shape, low, high), dtype, low, high)
    specials = np.array([low, high, min(max(0.0, low), high)])
    made = random.uniform(low, high, size)
    place = random.random(size)
    made = np.where(place < SPECIAL, random.choice(specials, size), made)
    made = np.where((place >= SPECIAL) & (place < TIED), made[:1], made)
    made[: min(size, 3)] = specials[: min(size, 3)]  # each is there
    return _of_kind(made.reshape(kind.shape), dtype, low, high)


def _largest(shape: Sequence[int], low: float, high: float) -> np.ndarray[Any, Any]:
    """Return mostly the larger end, and the other one in each row and column.

    So none is constant: a program that standardizes its data need not expect that.
    """
    most, other = (high, low) if abs(high) >= abs(low) else (low, high)
    every = min([4, *(size for size in shape if size > 1)])
    turns = np.indices(shape).sum(axis=0) if shape else np.ones(())
    return np.where(turns % every == 0, other, most)


def _ends(kind: DType, within: Interval) -> tuple[float, float]:
    if not within.known:
        within = USUAL
    low, high = float(within.low), float(within.high)
    if not kind.is_integer:
        return low, high
    limits = np.iinfo(kind.numpy)
    return max(np.ceil(low), float(limits.min)), min(np.floor(high), float(limits.max))


def _of_kind(
    made: np.ndarray[Any, Any], kind: DType, low: float, high: float
) -> np.ndarray[Any, Any]:
    """Return numbers in their type, rounded towards the inside of the interval."""
    if kind.is_integer:
        limits = np.iinfo(kind.numpy)
        whole = [min(max(round(x), limits.min), limits.max) for x in np.rint(made).tolist()]
        return np.array(whole, kind.numpy)
    found = made.astype(kind.numpy)
    wide = found.astype(np.float64)
    inside = np.where(wide > high, np.nextafter(found, kind.numpy.type(-np.inf)), found)
    inside = np.where(wide < low, np.nextafter(found, kind.numpy.type(np.inf)), inside)
    return np.asarray(inside.astype(kind.numpy))

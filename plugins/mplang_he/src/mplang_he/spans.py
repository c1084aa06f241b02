"""Spans: what numbers may be that nobody has yet. They add and multiply as numbers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
"""Numbers, or spans of them."""


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """Closed interval of numbers.

    Example:
        >>> NumberSpan(-1, 2) * NumberSpan(3, 4) + NumberSpan(1, 1)
        NumberSpan(low=-3, high=9)
    """

    low: float
    high: float

    def __add__(self, other: NumberSpan) -> NumberSpan:
        return NumberSpan(self.low + other.low, self.high + other.high)

    def __radd__(self, other: int) -> NumberSpan:
        return self  # sums of NumPy begin with 0

    def __sub__(self, other: NumberSpan) -> NumberSpan:
        return NumberSpan(self.low - other.high, self.high - other.low)

    def __neg__(self) -> NumberSpan:
        return NumberSpan(-self.high, -self.low)

    def __mul__(self, other: NumberSpan) -> NumberSpan:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return NumberSpan(min(ends), max(ends))

    def __or__(self, other: NumberSpan) -> NumberSpan:
        return NumberSpan(min(self.low, other.low), max(self.high, other.high))

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    def squared(self) -> NumberSpan:
        """Return the squares of the numbers."""
        ends = sorted((self.low * self.low, self.high * self.high))
        return NumberSpan(0 if self.low <= 0 <= self.high else ends[0], ends[1])

    def inverse(self) -> NumberSpan | None:
        """Return one over the numbers; ``None`` if 0 may be among them."""
        return None if self.low <= 0 <= self.high else NumberSpan(1 / self.high, 1 / self.low)


def spans_of(values: Array) -> Array:
    """Return known numbers as spans of one number each.

    Dimensions in which they repeat stay so.
    """
    few = np.empty(once(values).shape, object)
    for index, value in np.ndenumerate(once(values)):
        number = value.item() if isinstance(value, np.generic) else value
        few[index] = NumberSpan(number, number)
    return np.broadcast_to(few, values.shape)


def varying(span: NumberSpan, shape: tuple[int, ...]) -> Array:
    """Return an array of numbers of one span, each of which may be another one."""
    made = np.empty(shape, object)
    made.fill(span)
    return made


def elementwise(function: Any, *arrays: Array) -> Array:
    """Apply a function of elements, once where all arrays repeat."""
    shape = arrays[0].shape
    same = [
        all(array.strides[axis] == 0 for array in arrays) and shape[axis] > 1
        for axis in range(len(shape))
    ]
    index = tuple(slice(0, 1) if each else slice(None) for each in same)
    made = np.asarray(function(*(array[index] for array in arrays)))
    return np.broadcast_to(made, shape)


def once(values: Array) -> Array:
    """Return an array with one element along each dimension in which it repeats."""
    index = tuple(
        slice(0, 1) if stride == 0 and size > 1 else slice(None)
        for stride, size in zip(values.strides, values.shape, strict=True)
    )
    return values[index] if values.ndim else values

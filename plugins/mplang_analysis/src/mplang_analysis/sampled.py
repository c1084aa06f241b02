"""Intervals with numbers within them, on which an engine can try a function before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mplang_analysis.interval import UNKNOWN, Interval
from mplang_analysis.synthetic import USUAL, numbers_within
from mplang_core import TensorType

Array: TypeAlias = np.ndarray[Any, Any]

TRIALS = 3  # how often a function is tried
DATA = "the data that were put"
DECLARED = "numbers within the literal and declared ranges"
USUAL_DATA = f"numbers from {USUAL.low} to {USUAL.high}, as no range is declared"

MIN_DRAWN = 8  # numbers that are drawn for a small tensor: zeros and ends are among them
MAX_KEPT = 100_000  # elements of data that are tried themselves; of larger ones numbers are made up


@dataclass(frozen=True, slots=True)
class Sampled(Interval):
    """An interval, and numbers within it.

    Attributes:
        what: the numbers, in a message, each kind of them once.
        draw: returns an array for the number of a trial, below :data:`TRIALS`.
    """

    what: tuple[str, ...] = ()
    draw: Callable[[int], Array] = field(default=lambda trial: np.zeros(()), compare=False)

    def __or__(self, other: Interval) -> Interval:
        return self if other is self else Interval.__or__(self, other)

    @property
    def is_made_up(self) -> bool:
        """Whether some of the numbers are those of nobody's declaration."""
        return USUAL_DATA in self.what


def kinds_of(samples: Sequence[Sampled]) -> tuple[str, ...]:
    """Return what the numbers of several samples are, in a message."""
    return tuple(dict.fromkeys(part for x in samples for part in x.what))


def sample_of_data(data: Array, kind: TensorType, what: str = DATA) -> Interval:
    """Return the interval of data that the host has itself, or of a literal.

    Args:
        data: the data; they are copied.
        kind: their type.
        what: the data, in a message.

    Returns:
        The sample; an unknown interval if the data are not all finite, or not there.

    Example:
        >>> found = sample_of_data(np.array([1.0, 2.0]), TensorType("f64", (2,)))
        >>> print(found, found.draw(0))
        [1, 2] [1. 2.]
    """
    if data.dtype.kind not in "fiub" or not data.size:
        return UNKNOWN
    low, high = data.min().item(), data.max().item()
    if not Interval(low, high).known:
        return UNKNOWN
    if data.size > MAX_KEPT:
        return sample_within(kind, Interval(low, high), what)
    kept = data.copy()
    return Sampled(low, high, (what,), lambda trial: kept)


def sample_within(kind: TensorType, within: Interval, what: str = DECLARED) -> Sampled:
    """Return an interval with its ends by turns, numbers evenly between, and its largest.

    None of these arrays is constant: a program that standardizes its data need not expect that.

    Args:
        kind: the type of the numbers.
        within: a known interval.
        what: the numbers, in a message.

    Example:
        >>> sample_within(TensorType("f64", (3,)), Interval(0, 6)).draw(1)
        array([0., 3., 6.])
    """

    def draw(trial: int) -> Array:
        weights = _WEIGHTS[trial % len(_WEIGHTS)](kind.size)
        made = float(within.low) * (1 - weights) + float(within.high) * weights
        plain = np.dtype(np.float64) if kind.dtype.numpy.kind == "f" else kind.dtype.numpy
        return made.reshape(kind.shape).astype(plain)

    return Sampled(within.low, within.high, (what,), draw)


_WEIGHTS: list[Callable[[int], Array]] = [
    lambda size: (np.arange(size) + 1) % 2,
    lambda size: np.linspace(0.0, 1.0, size),
    lambda size: np.where(np.arange(size) == 1, 0.0, 1.0),
]


def sample_of_unknown(kind: TensorType, seed: int, within: Interval = USUAL) -> Sampled:
    """Return numbers as data of which nothing is declared may have: negative ones, zeros and ties.

    Args:
        kind: the type of the numbers.
        seed: another one for each value; the first trial puts ends and zeros at the same places.
        within: bounds that are known all the same.

    Example:
        >>> found = sample_of_unknown(TensorType("f32", (100,)), seed=0).draw(0)
        >>> float(found.min()), 0 in found
        (-4.0, True)
    """
    low, high = max(within.low, USUAL.low), min(within.high, USUAL.high)
    inside = Interval(low, high) if low <= high else within

    def draw(trial: int) -> Array:
        random = np.random.default_rng((seed, trial))
        flat = TensorType(kind.dtype, (max(kind.size, MIN_DRAWN),))
        places = trial * (1 + seed % 2) % TRIALS  # the lower end, the upper one and 0 come first
        made = np.roll(numbers_within(flat, inside, random), -places)
        if trial == 1:  # whole numbers are those that programs subtract
            made = np.trunc(made).astype(made.dtype)
        return made[: kind.size].reshape(kind.shape)

    if kind.dtype.numpy.kind in "ub":
        inside = Interval(max(inside.low, 0), 1 if kind.dtype.numpy.kind == "b" else inside.high)
    return Sampled(inside.low, inside.high, (USUAL_DATA,), draw)

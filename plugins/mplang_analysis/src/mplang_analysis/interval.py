"""Closed intervals of real numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Closed interval of numbers.

    The whole line also stands for what is not a number (NaN): nothing is known then. Every other
    interval excludes NaN. An infinite end is a value that may be there.

    Example:
        >>> Interval(-2, 1) | Interval(0, 3)
        Interval(low=-2, high=3)
        >>> print(Interval(0, 400_000), UNKNOWN)
        [0, 4e+05] not known
    """

    low: float = -math.inf
    high: float = math.inf

    @property
    def known(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def open(self) -> bool:
        """Whether nothing at all is known."""
        return self.low == -math.inf and self.high == math.inf

    @property
    def largest(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def smallest(self) -> float:
        """The smallest magnitude; 0 where the interval has 0 in it."""
        return 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __contains__(self, value: float) -> bool:
        return self.open or self.low <= value <= self.high

    def __str__(self) -> str:
        return f"[{self.low + 0.0:.4g}, {self.high + 0.0:.4g}]" if self.known else "not known"


UNKNOWN = Interval()


def hull(values: Iterable[float]) -> Interval:
    """Return the smallest interval with these numbers; NaN among them makes it unknown.

    Example:
        >>> hull([3, -1, 2]), hull([1, float("nan")]) == UNKNOWN
        (Interval(low=-1, high=3), True)
    """
    found = list(values)
    if any(value != value for value in found):
        return UNKNOWN
    return Interval(min(found), max(found))

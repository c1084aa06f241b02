"""Layout of one owner's units for a noisy aggregate: one tensor. Imports no engine."""

from __future__ import annotations

from decimal import Decimal
from hashlib import blake2b
from math import ceil, log, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

Statistic: TypeAlias = Literal["count", "sum", "mean", "histogram"]
STATISTICS: tuple[str, ...] = get_args(Statistic)

STEPS = 10**6
"""Steps at least in which the largest contribution of a unit is counted, as in plain 2**20."""

TAIL = 45
"""Scales beyond which no noise is: a Laplace one with a probability of exp(-45)."""

MAX_DIGITS = 30
"""Digits behind the point that a step has at most."""

SUM_BITS = 55
"""Bits that a sum over all units has at most, and so has noise, so that SPUs hold both."""


class NoiseForm(NamedTuple):
    """The form of a noisy aggregate of units.

    Each owner makes a tensor ``[planes, rows]`` for it, one row for each unit. Its first plane has
    the tokens of units. The owner of the column has a plane for each number that is added, others
    have one that says whether the unit is there. Behind these come planes with its noise, one
    number for each that is told.

    Attributes:
        statistic: what is told.
        column: of which column; empty of ``count``.
        side: the number of the side that has it.
        column_type: its type.
        values: of a histogram the values that are counted.
        low: of a sum or a mean what a unit adds at least, in steps.
        high: what it adds at most.
        digits: a step is ten to the power of minus this.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        sides: how many owners there are.

    Example:
        >>> form = NoiseForm("mean", "pay", 1, "int64", (), 0, 2000000, 3, 0.5, 0.0, 2)
        >>> form.numbers, form.reach, form.planes(0, 50), form.planes(1, 1)
        (2, 1000000, 3, 5)
    """

    statistic: Statistic
    column: str
    side: int
    column_type: str
    values: tuple[str | int | bool, ...]
    low: int
    high: int
    digits: int
    epsilon: float
    delta: float
    sides: int

    @property
    def numbers(self) -> int:
        """How many numbers get noise."""
        return len(self.values) if self.statistic == "histogram" else 1 + (self.statistic == "mean")

    @property
    def middle(self) -> int:
        """Of a mean the steps from which those of a unit are counted."""
        return (self.low + self.high) // 2 if self.statistic == "mean" else 0

    @property
    def reach(self) -> int:
        """How many steps a unit adds at most."""
        return max(abs(self.low - self.middle), abs(self.high - self.middle))

    @property
    def largest_noise(self) -> float:
        """What noise is not beyond, but once in a run of 10**19 draws."""
        halves = 2 if self.statistic == "mean" else 1
        norm, epsilon, delta = max(self.reach, 1), self.epsilon / halves, self.delta / halves
        if not delta:
            return TAIL * norm / epsilon
        # twice the scale of the classical theorem, as the search for it begins at
        return TAIL * 2 * norm * sqrt(2 * log(1.25 / delta)) / min(epsilon, 1.0)

    def own(self, side: int) -> int:
        """Return how many planes a side has of its units."""
        return self.numbers if side == self.side else 1

    def planes(self, side: int, rows: int) -> int:
        """Return how many planes the tensor of a side has."""
        return 1 + self.own(side) + ceil(self.numbers / rows)

    def waits(self, side: int) -> str:
        """Return the form of the tensor of a side as one word: what adds noise takes no other."""
        text = repr((tuple(self), side)).encode()
        return f"joins.noisy_units {blake2b(text, digest_size=16).hexdigest()}"


def steps_of(low: float, high: float, largest: float) -> tuple[int, int, int]:
    """Return bounds in steps, and the digits behind the point that a step has.

    Args:
        low: the lower bound.
        high: the upper one.
        largest: what is counted in ``STEPS`` steps at least.

    Raises:
        ValueError: steps would be too small.

    Example:
        >>> steps_of(0.0, 2500.0, 2500.0)
        (0, 2500000, 3)
    """
    exact = Decimal(repr(largest))
    digits = max(0, len(str(STEPS)) - 1 - exact.adjusted())
    if digits > MAX_DIGITS:
        raise ValueError(f"low and high are too small, {low:g} and {high:g}; take a smaller unit")
    in_steps = [int((Decimal(repr(end)) * 10**digits).to_integral_value()) for end in (low, high)]
    return in_steps[0], in_steps[1], digits

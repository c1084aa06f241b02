"""Traces of single ops, and verdicts about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from mplang_spu.reference_check.flat_function import Op
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.roundings import NEAR, WHOLE

Gap: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Array]
"""Distance of numbers from each other, of an op's operands and results."""


@dataclass(frozen=True, slots=True)
class OpTrace:
    """Operands and results of one op, on SPU and in float64.

    Attributes:
        op: the op.
        exact_in: its operands in float64, following SPU's earlier decisions.
        exact: its results in float64 on ``exact_in``.
        found_in: its operands on SPU.
        found: its results on SPU.
        local: its results in float64 on ``found_in``.
        step: the smallest step.
        precision: relative distance up to which its operands are equal up to rounding.
        roundings: returns ``exact_in`` and ``exact`` with data and ops rounded in other ways.
    """

    op: Op
    exact_in: Sequence[Array]
    exact: Sequence[Array]
    found_in: Sequence[Array]
    found: Sequence[Array]
    local: Sequence[Array]
    step: float
    precision: float = WHOLE
    roundings: Callable[[], Sequence[tuple[Sequence[Array], Sequence[Array]]]] = tuple

    @property
    def band(self) -> float:
        """Distance up to which SPU may take numbers for equal."""
        return NEAR * self.step

    def is_apart(self, gap: Gap, size: Array) -> Array:
        """Return which numbers are apart in whatever way data and ops are rounded.

        Args:
            gap: how far they are apart.
            size: the size of the numbers.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            here = gap(self.exact_in, self.exact)
            moves = [np.abs(difference(gap(*way), here)) for way in self.roundings()]
            allowed = np.max([np.zeros_like(here), *moves], axis=0) + self.precision * size
            return np.asarray(~(np.abs(here) <= allowed))  # NaN is apart, too


class OpVerdict(NamedTuple):
    """Wrong elements of a result.

    Attributes:
        wrong: which ones are.
        pair: the two numbers that decide about each element.
    """

    wrong: Array
    pair: tuple[Array, Array] | None = None


def difference(left: Array, right: Array) -> Array:
    """Return the difference of numbers; of equal infinite ones, 0."""
    with np.errstate(invalid="ignore"):
        return np.where(left == right, 0.0, left - right)


def larger(left: Array, right: Array) -> Array:
    """Return the larger size of two numbers."""
    return np.asarray(np.maximum(np.abs(left), np.abs(right)))

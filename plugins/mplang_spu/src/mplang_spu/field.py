"""Which numbers SPU's fields hold, and from where its functions are wrong, silently."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mplang_core.interval import Interval
from mplang_core.ir.ranges import NumberStatus

__all__ = ["Field"]

FEW = 16  # steps; the rounding of a product alone takes up to four
DIGITS = 1024  # steps, for three decimal digits
LARGEST_POWER = 32  # of 2; what libspu's exp gives for anything larger


@dataclass(frozen=True, slots=True)
class Field:
    """Fixed-point numbers in a ring.

    A number is an integer of the ring, in steps of 2^-fraction. libspu's comparisons take two bits
    of the ring. A product has twice the fraction bits before they are cut off.

    Args:
        bits: of the ring.
        fraction: bits after the point.

    Example:
        >>> field = Field(64, 18)
        >>> [field.holds(Interval(0, high)) for high in (1e6, 1e14, 1e-6)]
        ['fits', 'overflows', 'vanishes']
        >>> field.product(Interval(0, 1e8))
        'overflows'
    """

    bits: int
    fraction: int

    def holds(self, x: Interval, is_float: bool = True) -> NumberStatus:
        """Tell whether shares hold a value."""
        if not x.known:
            return "not known"
        if x.largest >= math.ldexp(1, self.bits - 2 - self.fraction * is_float):
            return "overflows"
        if is_float and 0 < x.largest < math.ldexp(FEW, -self.fraction):
            return "vanishes"
        return "fits"

    def product(self, x: Interval) -> NumberStatus:
        """Tell whether a product, or a sum of products, fits before it is cut off."""
        return self._below(x, self.bits - 2 - 2 * self.fraction)

    def factor(self, x: Interval) -> NumberStatus:
        """Tell whether a literal that is multiplied with keeps its digits."""
        if x.low == x.high == round(x.low):
            return "fits"  # integers are exact
        return "coarse" if 0 < x.largest < math.ldexp(DIGITS, -self.fraction) else "fits"

    def reciprocal(self, x: Interval) -> NumberStatus:
        """Tell whether the reciprocal of a literal divisor keeps its digits."""
        if not x.smallest:
            return "not known"
        over = Interval(1 / x.largest, 1 / x.smallest)
        return "vanishes" if self.holds(over) == "vanishes" else self.factor(over)

    def divisor(self, x: Interval) -> NumberStatus:
        """Tell whether division takes a divisor."""
        return self._below(x, self.fraction)

    def root(self, x: Interval) -> NumberStatus:
        """Tell whether ``sqrt`` and ``rsqrt`` take an operand."""
        return self._below(x, self.fraction - 1)

    def logarithm(self, x: Interval) -> NumberStatus:
        """Tell whether ``log`` takes an operand."""
        return self._below(x, self.fraction + 1)

    def power(self, x: Interval) -> NumberStatus:
        """Tell whether ``exp`` gives a result."""
        return self._below(x, LARGEST_POWER)

    def _below(self, x: Interval, exponent: int) -> NumberStatus:
        return "overflows" if x.largest >= math.ldexp(1, exponent) else "fits"

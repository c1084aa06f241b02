"""Which numbers SPU's fields hold, and from where its functions are wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mplang_core.interval import Interval
from mplang_core.ir.ranges import NumberStatus

__all__ = ["Field"]

FEW = 16  # steps; the rounding of a product alone takes up to four
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

    def divisor(self, x: Interval) -> NumberStatus:
        """Tell whether division, ``sqrt``, ``rsqrt`` and ``log`` take an operand.

        The lowering scales what is large by one power of two.
        """
        return self._below(x, 2 * self.fraction - 4)

    def power(self, x: Interval) -> NumberStatus:
        """Tell whether ``exp`` gives a result: libspu's to 2^32, and its square in a product."""
        return self._below(x, max(LARGEST_POWER, self.bits - 2 - 2 * self.fraction))

    def _below(self, x: Interval, exponent: int) -> NumberStatus:
        return "overflows" if x.largest >= math.ldexp(1, exponent) else "fits"

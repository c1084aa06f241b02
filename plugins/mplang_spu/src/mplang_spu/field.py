"""Which numbers SPU's fields hold, and from where its functions are wrong."""

from __future__ import annotations

from dataclasses import dataclass

from mplang_core.interval import Interval
from mplang_core.ir.ranges import NumberStatus
from mplang_spu.target import Target

__all__ = ["Field"]

MIN_STEPS = 16  # steps; the rounding of a product alone takes up to four
LARGEST_POWER = 2.0**32  # what libspu's exp gives for anything larger


@dataclass(frozen=True, slots=True)
class Field:
    """Fixed-point numbers in a ring.

    A number is an integer of the ring, in steps of 2^-fraction. libspu's comparisons take two bits
    of the ring. A product has twice the fraction bits before they are cut off.

    Args:
        target: the ring and its fixed point.

    Example:
        >>> field = Field(Target("ABY3", "FM64", 18))
        >>> [field.holds(Interval(0, high)) for high in (1e6, 1e14, 1e-6)]
        ['fits', 'overflows', 'vanishes']
        >>> field.product(Interval(0, 1e8))
        'overflows'
    """

    target: Target

    def holds(self, x: Interval, is_float: bool = True) -> NumberStatus:
        """Tell whether shares hold a value."""
        if not x.known:
            return "not known"
        if x.largest >= (self.target.limit if is_float else self.target.integers):
            return "overflows"
        if is_float and 0 < x.largest < MIN_STEPS * self.target.step:
            return "vanishes"
        return "fits"

    def product(self, x: Interval) -> NumberStatus:
        """Tell whether a product, or a sum of products, fits before it is cut off."""
        return _below(x, self.target.factors)

    def divisor(self, x: Interval) -> NumberStatus:
        """Tell whether division, ``sqrt``, ``rsqrt`` and ``log`` take an operand.

        The lowering scales what is large by one power of two.
        """
        return _below(x, 2.0 ** (2 * self.target.fxp - 4))

    def power(self, x: Interval) -> NumberStatus:
        """Tell whether ``exp`` gives a result: libspu's to 2^32, and its square in a product."""
        return _below(x, max(LARGEST_POWER, self.target.factors))


def _below(x: Interval, limit: float) -> NumberStatus:
    return "overflows" if x.largest >= limit else "fits"

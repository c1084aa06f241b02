"""Range limits of fixed-point numbers in SPU's rings."""

from __future__ import annotations

from dataclasses import dataclass

from mplang_analysis import Interval, NumberStatus

from mplang_spu.target import Target

MIN_STEPS = 16  # below this, rounding dominates: that of one product is up to four steps
LARGEST_POWER = 2.0**32  # libspu's exp saturates here


@dataclass(frozen=True, slots=True)
class Field:
    """Range limits of a fixed-point representation in a ring.

    A number is a ring integer that counts steps of 2^-fraction. libspu's comparisons reserve two
    bits of the ring. A product has twice the fraction bits before truncation.

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
        """Classify an interval by whether shares can represent its numbers.

        Args:
            x: the interval of the value.
            is_float: whether the value is fixed point; otherwise it is an integer.

        Returns:
            ``fits``, ``overflows``, ``vanishes`` (below ``MIN_STEPS`` steps) or ``not known``.
        """
        if not x.known:
            return "not known"
        if x.largest >= (self.target.limit if is_float else self.target.integers):
            return "overflows"
        if is_float and 0 < x.largest < MIN_STEPS * self.target.step:
            return "vanishes"
        return "fits"

    def product(self, x: Interval) -> NumberStatus:
        """Classify a product, or a sum of products, before truncation."""
        return _below(x, self.target.factors)

    def divisor(self, x: Interval) -> NumberStatus:
        """Classify an operand of division, ``sqrt``, ``rsqrt`` or ``log``.

        The lowering scales large operands down by one power of two.
        """
        return _below(x, 2.0 ** (2 * self.target.fxp - 4))

    def power(self, x: Interval) -> NumberStatus:
        """Classify a result of ``exp``.

        libspu's ``exp`` reaches 2^32; the lowering squares a root to cover the range of products.
        """
        return _below(x, max(LARGEST_POWER, self.target.factors))


def _below(x: Interval, limit: float) -> NumberStatus:
    return "overflows" if x.largest >= limit else "fits"

"""Bounds of dividends on shares. Imports no engine."""

from __future__ import annotations


def bits_of_dividend(field: int, fraction: int) -> int:
    """Return how many bits a number has at most before the point, to be multiplied or divided.

    A product has twice the bits of a fraction, and a quotient is a product with a reciprocal:
    beyond this libspu gives another number, without an error.

    Args:
        field: the bits of the SPU's ring.
        fraction: those of a fraction.

    Example:
        >>> bits_of_dividend(64, 18), bits_of_dividend(128, 40)
        (26, 46)
    """
    return field - 2 - 2 * fraction

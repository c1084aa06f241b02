"""Sizes of the limbs in which numbers are shared as well. Imports no JAX; see :mod:`.fitting`."""

from __future__ import annotations

from math import ceil

SPARE = 4
"""Bits of the number of digits that a sum has at most."""


def width_of(rows: int, sides: int) -> int:
    """Return how many bits a limb has, so that sums of products of limbs have less than 61.

    Args:
        rows: how many keys there are at most.
        sides: how many sides have limbs.

    Raises:
        ValueError: there are too many.

    Example:
        >>> width_of(1200, 2), width_of(1200, 3)
        (24, 15)
    """
    for width in range(30, 1, -1):
        digits = limbs_of(width)
        if (digits ** (sides - 1) * rows).bit_length() + width * sides <= 61 and (
            sides * (digits - 1) < 1 << SPARE
        ):
            return width
    raise ValueError(f"sums of products of {sides} parties over {rows} keys are too large")


def limbs_of(width: int) -> int:
    """Return how many limbs a number of 62 bits has."""
    return ceil(62 / width)

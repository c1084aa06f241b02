"""Variances on shares: of sums, without what cancels out being rounded."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

NUMERATOR = 60
"""Bits that a numerator has at most: the number of values times the sum of their squares."""


def bits_of_spread(rows: int) -> tuple[int, int]:
    """Return how many bits the number of values has at most, and the sum of their squares.

    Args:
        rows: how many keys there are at most, each of which may have several values.

    Example:
        >>> bits_of_spread(2400)
        (22, 38)
    """
    known = min(30, rows.bit_length() + 10)
    return known, NUMERATOR - known


def variance(total: Array, squares: Array, count: Array, most: int, *, sample: bool) -> Array:
    """Return the variance of the values of each group, zero where there are too few.

    ``n * squares - total**2`` is exact as an integer, and never negative. A dividend has fewer bits
    than this may have, so the last ones of a large one are left out: it is right to a part in
    2**(most - 15).

    Args:
        total: the sum of the values; ``[groups]``, as all.
        squares: the sum of their squares.
        count: how many there are.
        most: how many bits a dividend has at most.
        sample: whether they are a sample, divided by ``count - 1``.

    Example:
        >>> import numpy as np
        >>> two = np.array([1, 6]), np.array([1, 14]), np.array([1, 3])
        >>> variance(*two, 46, sample=True).tolist()
        [0.0, 1.0]
    """
    numerator = count * squares - total * total
    cut = max(0, NUMERATOR - most)
    spreads, large = numerator > 0, numerator >= 2**most
    dividend = jnp.where(large, numerator >> cut, numerator).astype("float64")
    units, others = jnp.maximum(count, 1), jnp.maximum(count - 1 if sample else count, 1)
    made = dividend / units.astype("float64") / others.astype("float64")
    larger = made
    for _ in range(cut):  # a product has no room for it
        larger = larger + larger
    made = jnp.where(large, larger, made)
    return jnp.where(spreads, made, 0)  # a quotient of 0 may be rounded below it

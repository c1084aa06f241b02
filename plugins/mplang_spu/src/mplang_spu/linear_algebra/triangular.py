"""Triangular systems, by the inverse of blocks. Imports JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mplang_spu.linear_algebra.matrices import diagonal, identity, product, transposed
from mplang_spu.target import Target


def triangular_solve(
    a: Array,
    b: Array,
    target: Target,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Array:
    """Solve systems with a triangular matrix; parameters as in ``lax.linalg.triangular_solve``."""
    inverse = inverse_of_lower(a if lower else transposed(a), unit_diagonal=unit_diagonal)
    if lower == transpose_a:
        inverse = transposed(inverse)
    return product(inverse, b) if left_side else product(b, inverse)


def inverse_of_lower(a: Array, *, unit_diagonal: bool) -> Array:
    """Return the inverse of lower triangular matrices; what is above the diagonal is not read.

    Inverted blocks on the diagonal, twice as wide in each turn: ``log n`` turns of two products
    instead of ``n`` substitutions, each of which would wait for the one before.
    """
    n = a.shape[-1]
    inverse = identity(a, n, n)
    if not unit_diagonal:
        inverse = jnp.where(np.eye(n, dtype=bool), (1 / diagonal(a))[..., None], 0)
    width = 1
    while width < n:
        below = jnp.where(_below(n, width), a, 0)
        inverse = inverse - product(product(inverse, below), inverse)
        width *= 2
    return inverse


def _below(n: int, width: int) -> np.ndarray[Any, Any]:
    """Return where the lower left quarters of the blocks of twice the width are."""
    block = np.arange(n) // width
    is_below: np.ndarray[Any, Any] = (block[:, None] == block + 1) & (block[:, None] % 2 == 1)
    return is_below

"""Eigenvalues of symmetric matrices by Jacobi's method. Imports JAX."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from mplang_spu.linear_algebra.jacobi import next_pairs, rotated, rotation, sweeps, with_fixed_signs
from mplang_spu.linear_algebra.matrices import (
    diagonal,
    identity,
    ordered,
    permuted,
    scaled,
    transposed,
)
from mplang_spu.target import Target


def eigh(a: Array, target: Target, *, lower: bool) -> tuple[Array, Array]:
    """Return eigenvectors, and eigenvalues in ascending order.

    The number of rotations depends on the size of the matrix only.

    Args:
        a: matrices, of which one triangle is read.
        target: the fixed point.
        lower: whether it is the lower one.
    """
    n = a.shape[-1]
    triangle = a if lower else transposed(a)
    is_below = np.tril(np.ones((n, n), bool), -1)
    full = jnp.where(is_below, triangle, transposed(triangle))
    largest = 2.0 ** (math.log2(target.factors) // 2 - 3)  # squares of differences are in range
    unit = 2.0 ** -np.ceil(np.log2(n * n)) * largest
    work, size = scaled(full, unit, target)
    even = n + n % 2
    edge = [(0, 0)] * (a.ndim - 2) + [(0, even - n), (0, even - n)]
    work, vectors = jnp.pad(work, edge), identity(a, even, even)
    half = even // 2

    def turn(_: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        work, vectors = state
        entries = diagonal(work), diagonal(work[..., :half, half:])
        c, s = rotation(entries[0][..., :half], entries[0][..., half:], entries[1], target)
        work = transposed(rotated(work, c, s))
        both = rotated(jnp.concatenate([work, vectors], axis=-1), c, s)
        both = next_pairs(both)
        return next_pairs(transposed(both[..., :even])), both[..., even:]

    work, vectors = lax.fori_loop(0, sweeps(n) * (even - 1), turn, (work, vectors))
    values = diagonal(work)[..., :n]
    order = ordered(values, descending=False)
    vectors = with_fixed_signs(vectors[..., :n, :n], vectors[..., :n, :n])
    columns = jnp.concatenate([values[..., None] / unit * size, vectors], axis=-1)
    columns = permuted(order, columns)
    return transposed(columns[..., 1:]), columns[..., 0]

"""Singular values by one-sided Jacobi's method. Imports JAX."""

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
    product,
    scaled,
    transposed,
)
from mplang_spu.linear_algebra.qr import reflected, reflections
from mplang_spu.target import Target


def svd(a: Array, target: Target, *, full_matrices: bool, compute_uv: bool) -> tuple[Array, ...]:
    """Return singular values in descending order, and the vectors, as ``lax.linalg.svd`` does.

    The columns themselves are rotated until they are orthogonal: their products, whose small
    singular values are lost, are computed for the angles only.
    """
    m, n = a.shape[-2:]
    if m < n:
        found = svd(transposed(a), target, full_matrices=full_matrices, compute_uv=compute_uv)
        return found if not compute_uv else (found[0], transposed(found[2]), transposed(found[1]))
    largest = 2.0 ** (math.log2(target.factors) // 4 - 1)  # squares of squares are in range
    unit = 2.0 ** -np.ceil(np.log2(m * n)) * largest
    work, size = scaled(a, unit, target)
    outer = None
    if m > n:
        outer = reflections(work, target)
        work = jnp.where(np.triu(np.ones((n, n), bool)), outer[0][..., :n, :], 0)
    rows, vectors = _orthogonal(transposed(work), target)
    values = jnp.sqrt((rows * rows).sum(-1))
    order = ordered(values, descending=True)
    values = permuted(order, (values / unit)[..., None] * size)[..., 0]
    if not compute_uv:
        return (values,)
    both = with_fixed_signs(jnp.concatenate([rows, vectors], axis=-1), vectors)
    both = permuted(order, both)
    left = _directions(transposed(both[..., :n]), target)
    if outer is not None:
        left = _outer(outer, left, full_matrices, target)
    return values, left, both[..., n:]


def _orthogonal(rows: Array, target: Target) -> tuple[Array, Array]:
    """Return rows rotated until they are orthogonal, and the rotation."""
    n, width = rows.shape[-2:]
    even = n + n % 2
    half = even // 2
    rows = jnp.pad(rows, [(0, 0)] * (rows.ndim - 2) + [(0, even - n), (0, 0)])
    state = jnp.concatenate([rows, identity(rows, even, n)], axis=-1)

    def turn(_: Array, state: Array) -> Array:
        upper, lower = state[..., :half, :width], state[..., half:, :width]
        left = jnp.concatenate([upper, lower, upper], axis=-2)
        right = jnp.concatenate([upper, lower, lower], axis=-2)
        products = (left * right).sum(-1)
        p, q, apart = (products[..., i * half : (i + 1) * half] for i in range(3))
        return next_pairs(rotated(state, *rotation(p, q, apart, target)))

    state = lax.fori_loop(0, (sweeps(n) + 3) * (even - 1), turn, state)
    return state[..., :n, :width], state[..., :n, width:]


def _directions(columns: Array, target: Target) -> Array:
    """Return unit vectors along orthogonal columns, and others where a column is zero."""
    packed, factors = reflections(columns, target)
    is_negative = diagonal(packed) < 0
    unit = reflected(packed, factors, target)
    return jnp.where(is_negative[..., None, :], -unit, unit)


def _outer(outer: tuple[Array, Array], left: Array, full_matrices: bool, target: Target) -> Array:
    """Return the left vectors of the whole matrix, given those of its triangular factor."""
    packed, factors = outer
    m, n = packed.shape[-2:]
    if not full_matrices:
        return product(reflected(packed, factors, target), left)
    wide = jnp.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, m - n)])
    unit = reflected(wide, factors, target)
    return jnp.concatenate([product(unit[..., :n], left), unit[..., n:]], axis=-1)

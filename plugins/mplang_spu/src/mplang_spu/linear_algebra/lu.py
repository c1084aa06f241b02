"""LU decomposition with partial pivoting. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mplang_spu.linear_algebra.blocks import at, blocks, places, repeated
from mplang_spu.linear_algebra.matrices import scaled, transposed
from mplang_spu.target import Target

Found = tuple[Array, Array, Array]  # rows, pivots, places in the order


def lu(a: Array, target: Target) -> tuple[Array, Array, Array]:
    """Return factors, pivots and permutation of matrices, as ``lax.linalg.lu`` does.

    The pivot's row is chosen by a mask, so nothing that happens depends on data.
    """
    m, n = a.shape[-2:]
    rest, size = scaled(a, 1.0, target)
    order = jnp.broadcast_to(jnp.arange(m, dtype=jnp.int32), a.shape[:-1])
    rows, pivots, orders = [], [], []
    for start, count in blocks(min(m - 1, n)):
        (rest, order), (top, pivot, place) = _eliminated(rest, order, start, count)
        rows.append(transposed(top))
        pivots.append(pivot)
        orders.append(place)
    if m <= n:
        pivots.append(jnp.full((*a.shape[:-2], 1), m - 1, jnp.int32))
    factors = jnp.concatenate([*rows, rest], axis=-2)
    is_upper = jnp.triu(jnp.ones((m, n), bool))
    factors = jnp.where(is_upper, factors * size, factors)
    return factors, jnp.concatenate(pivots, axis=-1), jnp.concatenate([*orders, order], axis=-1)


def _eliminated(
    rest: Array, order: Array, start: int, count: int
) -> tuple[tuple[Array, Array], Found]:
    """Eliminate columns; return the rows and their order that are left, and those of the pivots.

    Each step takes the pivot's row from the rows, and fills up with zeros below.
    """
    below = [(0, 0)] * (order.ndim - 1) + [(0, 1)]

    def step(state: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], Found]:
        rows, order = state
        active = rows[..., start:]
        is_pivot = _first_largest(jnp.abs(at(active, k)))
        pivot = jnp.where(is_pivot, places(is_pivot) + k + start, 0).sum(-1, dtype=jnp.int32)
        top, rows = _exchanged(rows, is_pivot[..., None])
        place, order = _exchanged(order[..., None], is_pivot[..., None])
        left, active, right = rows[..., :start], rows[..., start:], top[..., start:]
        factors = (at(active, k) * (1 / at(right, k))[..., None])[..., None]
        is_right = places(right) > k
        active = active - factors * jnp.where(is_right, right, 0)[..., None, :]
        active = jnp.where(places(right) == k, factors, active)
        rows = jnp.concatenate([left, active], axis=-1)
        state = jnp.pad(rows, [*below, (0, 0)]), jnp.pad(order[..., 0], below)
        return state, (top, pivot, place[..., 0])

    (rest, order), found = repeated(step, (rest, order), count)
    left = order.shape[-1] - count
    return (rest[..., :left, :], order[..., :left]), found


def _first_largest(sizes: Array) -> Array:
    """Return where the largest number is, the first one of equal ones."""
    largest = sizes >= sizes.max(-1, keepdims=True)
    return largest & (jnp.cumsum(largest.astype(jnp.int32), axis=-1) == 1)


def _exchanged(rows: Array, is_pivot: Array) -> tuple[Array, Array]:
    """Return the row at the pivot, and the others, with the first one in its place."""
    top = jnp.where(is_pivot, rows, 0).sum(-2, dtype=rows.dtype)
    rest = jnp.where(is_pivot[..., 1:, :], rows[..., :1, :], rows[..., 1:, :])
    return top, rest

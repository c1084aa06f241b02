"""LU decomposition with partial pivoting. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mplang_spu.linear_algebra.matrices import scaled
from mplang_spu.target import Target


def lu(a: Array, target: Target) -> tuple[Array, Array, Array]:
    """Return factors, pivots and permutation of matrices, as ``lax.linalg.lu`` does.

    The pivot's row is chosen by a mask, so nothing that happens depends on data.
    """
    m, n = a.shape[-2:]
    rest, size = scaled(a, 1.0, target)
    order = jnp.broadcast_to(jnp.arange(m, dtype=jnp.int32), a.shape[:-1])
    rows, pivots, places = [], [], []
    for i in range(min(m, n)):
        if i < m - 1:
            is_pivot = _first_largest(jnp.abs(rest[..., i]))
            top, rest = _exchanged(rest, is_pivot[..., None])
            place, order = _exchanged(order[..., None], is_pivot[..., None])
            order = order[..., 0]
            at = jnp.arange(i, m, dtype=jnp.int32)
            pivots.append(jnp.where(is_pivot, at, 0).sum(-1, dtype=jnp.int32))
        else:
            top, rest, place, order = (
                rest[..., 0, :],
                rest[..., 1:, :],
                order[..., :1],
                order[..., 1:],
            )
            pivots.append(jnp.full(a.shape[:-2], i, jnp.int32))
        rows.append(top)
        places.append(place[..., 0])
        factors = rest[..., i] * (1 / top[..., i])[..., None]
        right = rest[..., i + 1 :] - factors[..., None] * top[..., None, i + 1 :]
        rest = jnp.concatenate([rest[..., :i], factors[..., None], right], axis=-1)
    found = jnp.concatenate([jnp.stack(rows, axis=-2), rest], axis=-2)
    order = jnp.concatenate([jnp.stack(places, axis=-1), order], axis=-1)
    is_upper = jnp.triu(jnp.ones((m, n), bool))
    return jnp.where(is_upper, found * size, found), jnp.stack(pivots, axis=-1), order


def _first_largest(sizes: Array) -> Array:
    """Return where the largest number is, the first one of equal ones."""
    largest = sizes >= sizes.max(-1, keepdims=True)
    return largest & (jnp.cumsum(largest.astype(jnp.int32), axis=-1) == 1)


def _exchanged(rows: Array, is_pivot: Array) -> tuple[Array, Array]:
    """Return the row at the pivot, and the others, with the first one in its place."""
    top = jnp.where(is_pivot, rows, 0).sum(-2, dtype=rows.dtype)
    rest = jnp.where(is_pivot[..., 1:, :], rows[..., :1, :], rows[..., 1:, :])
    return top, rest

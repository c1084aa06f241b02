"""Cholesky decomposition. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mplang_spu.linear_algebra.blocks import at, blocks, places, repeated
from mplang_spu.linear_algebra.matrices import diagonal, inverse_root
from mplang_spu.target import Target


def cholesky(a: Array, target: Target) -> Array:
    """Return lower triangular factors of symmetric positive matrices.

    Rows and columns are scaled to a diagonal of ones before: columns of different units cost no
    precision.
    """
    sizes = diagonal(a)
    scale = inverse_root(sizes)
    rest = a * scale[..., :, None] * scale[..., None, :]
    factors = []
    for start, count in blocks(a.shape[-1]):
        rest, columns = repeated(_eliminate, rest, count)
        factors.append(jnp.pad(columns, [(0, 0)] * (a.ndim - 2) + [(start, 0), (0, 0)]))
        rest = rest[..., count:, count:]
    return jnp.concatenate(factors, axis=-1) * (sizes * scale)[..., None]


def _eliminate(rest: Array, k: Array) -> tuple[Array, Array]:
    column = at(rest, k)
    column = column * inverse_root(at(column, k))[..., None]
    column = jnp.where(places(column) >= k, column, 0)
    return rest - column[..., :, None] * column[..., None, :], column

"""Cholesky decomposition. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

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
    n, columns = a.shape[-1], []
    for i in range(n):
        column = rest[..., :, 0] * inverse_root(rest[..., 0, 0])[..., None]
        columns.append(jnp.pad(column, [(0, 0)] * (a.ndim - 2) + [(i, 0)]))
        below = column[..., 1:]
        rest = rest[..., 1:, 1:] - below[..., :, None] * below[..., None, :]
    return jnp.stack(columns, axis=-1) * (sizes * scale)[..., None]

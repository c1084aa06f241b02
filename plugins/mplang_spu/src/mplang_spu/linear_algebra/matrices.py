"""Parts that all decompositions share: scaling, reciprocal roots, orders. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from mplang_spu.target import Target


def tiny(target: Target) -> float:
    """Return a number of a few steps, below which a computed one is rounding."""
    return 8 * target.step


def transposed(x: Array) -> Array:
    """Return matrices with rows and columns exchanged."""
    return jnp.swapaxes(x, -1, -2)


def diagonal(x: Array) -> Array:
    """Return the diagonals of matrices, by slices: a gather would compare indices."""
    n = min(x.shape[-2:])
    return jnp.stack([x[..., i, i] for i in range(n)], axis=-1)


def product(x: Array, y: Array) -> Array:
    """Return matrix products, in full precision also where a plain device runs them."""
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def scaled(x: Array, mean: float, target: Target) -> tuple[Array, Array]:
    """Scale matrices such that the mean size of their elements is ``mean``.

    Args:
        x: the matrices.
        mean: a power of two.
        target: the fixed point.

    Returns:
        The scaled matrices, and the mean size before, with two dimensions of one.
    """
    size = jnp.mean(jnp.abs(x), axis=(-2, -1), keepdims=True)
    size = jnp.maximum(size, 1024 * target.step)
    return x * (mean / size), size


def inverse_root(x: Array) -> Array:
    """Return ``1/sqrt(x)``: SPU's own is 8e-5 off, which one iteration of Newton squares."""
    y = lax.rsqrt(x)
    return y * (1.5 - (0.5 * x * y) * y)


def inverse_root_near_one(x: Array) -> Array:
    """Return ``1/sqrt(x)`` for numbers between 1 and 4, by products only.

    A parabola is 2.4 % off; three iterations of Newton leave 2e-12.
    """
    y = (0.0512 * x - 0.41068) * x + 1.33544
    for _ in range(3):
        y = y * (1.5 - (0.5 * x * y) * y)
    return y


def ordered(keys: Array, *, descending: bool) -> Array:
    """Return the permutation matrices, as bools, that order numbers when multiplied from the left.

    Args:
        keys: the numbers.
        descending: the largest first.
    """
    places = lax.broadcasted_iota(jnp.int32, keys.shape, keys.ndim - 1)
    _, order = lax.sort((-keys if descending else keys, places), num_keys=1, is_stable=True)
    return order[..., :, None] == jnp.arange(keys.shape[-1], dtype=jnp.int32)


def permuted(permutation: Array, x: Array) -> Array:
    """Return the rows of matrices in another order, exactly.

    Args:
        permutation: as :func:`ordered` returns it.
        x: the matrices.
    """
    chosen = jnp.where(permutation[..., None], x[..., None, :, :], 0)
    return chosen.sum(-2)


def identity(like: Array, rows: int, columns: int) -> Array:
    """Return unit matrices of the given shape, one per matrix of ``like``."""
    return jnp.broadcast_to(
        jnp.eye(rows, columns, dtype=like.dtype), (*like.shape[:-2], rows, columns)
    )

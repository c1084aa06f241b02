"""QR decomposition by Householder's reflections. Imports JAX."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from mplang_spu.linear_algebra.blocks import at, blocks, places, repeated
from mplang_spu.linear_algebra.matrices import identity, inverse_root, product, tiny, transposed
from mplang_spu.linear_algebra.triangular import inverse_of_lower
from mplang_spu.target import Target


def reflections(a: Array, target: Target) -> tuple[Array, Array]:
    """Return R, with the vectors of the reflections below it, and their factors, as LAPACK does.

    Columns are scaled to a length of one before.
    """
    m, n = a.shape[-2:]
    squares = jnp.maximum((a * a).sum(-2), tiny(target))
    scale = inverse_root(squares)
    rest = a * scale[..., None, :]
    rows, vectors, factors = [], [], []
    left = [(0, 0)] * (a.ndim - 1)
    for start, count in blocks(min(m - 1, n)):
        rest, (vector, factor) = repeated(partial(_reflect, target), rest, count)
        rows.append(jnp.pad(rest[..., :count, :], [*left, (start, 0)]))
        vectors.append(jnp.pad(vector, [*left[1:], (start, 0), (0, 0)]))
        factors.append(factor)
        rest = rest[..., count:, count:]
    rows.append(jnp.pad(rest, [*left, (n - rest.shape[-1], 0)]))
    vectors.append(jnp.zeros((*a.shape[:-1], rest.shape[-1]), a.dtype))
    if m <= n:
        factors.append(jnp.zeros((*a.shape[:-2], 1), a.dtype))
    upper = jnp.concatenate(rows, axis=-2) * (squares * scale)[..., None, :]
    below = jnp.concatenate(vectors, axis=-1)
    packed = jnp.where(np.tril(np.ones((m, n), bool), -1), below, upper)
    return packed, jnp.concatenate(factors, axis=-1)


def _reflect(target: Target, rest: Array, k: Array) -> tuple[Array, tuple[Array, Array]]:
    """Reflect columns such that the one at ``k`` is zero below; rows above stay."""
    column = at(rest, k)
    place = places(column)
    first, x = at(column, k)[..., None], jnp.where(place >= k, column, 0)
    end, ratio, factor = _reflection(first, x, target)
    vector = jnp.where(place > k, x * ratio, jnp.where(place == k, 1, 0).astype(x.dtype))
    along = (vector[..., None] * rest).sum(-2, keepdims=True)
    turned = rest - (factor * vector)[..., None] * along
    is_end = (place == k)[:, None] & (jnp.arange(rest.shape[-1]) == k)
    return jnp.where(is_end, end[..., None], turned), (vector, factor[..., 0])


def _reflection(first: Array, x: Array, target: Target) -> tuple[Array, Array, Array]:
    """Return where a reflection takes the first axis, what its vector is a multiple by, its factor.

    There is none if nothing is left of a column that depends on those before.
    """
    square = (x * x).sum(-1, keepdims=True)
    is_empty = square < tiny(target)
    inverse = inverse_root(jnp.maximum(square, tiny(target)))
    length = square * inverse
    is_negative = first < 0
    end = jnp.where(is_negative, length, -length)
    apart = jnp.where(is_negative, length - first, first + length)  # |first - end|
    ratio = 1 / jnp.where(is_empty, 1.0, first - end)
    factor = jnp.where(is_empty, 0.0, apart * inverse)
    return jnp.where(is_empty, first, end), ratio, factor


def reflected(a: Array, factors: Array, target: Target) -> Array:
    """Return the first columns of the product of reflections, as LAPACK's ``orgqr`` does.

    All reflections at once are ``1 - V T V'``, where the inverse of T is triangular.
    """
    m, n = a.shape[-2:]
    k = factors.shape[-1]
    a = a[..., :k]
    is_below = np.tril(np.ones((m, k), bool), -1)
    vectors = jnp.where(is_below, a, np.eye(m, k, dtype=a.dtype))
    is_one = factors > 0.5  # a factor is 0, or between 1 and 2
    vectors = jnp.where(is_one[..., None, :], vectors, 0)
    inverses = 1 / jnp.where(is_one, factors, 1)
    gram = product(transposed(vectors), vectors)
    lower = jnp.where(np.eye(k, dtype=bool), inverses[..., None], gram)
    middle = transposed(inverse_of_lower(lower, unit_diagonal=False))
    top = transposed(vectors[..., :n, :])
    return identity(a, m, n) - product(product(vectors, middle), top)

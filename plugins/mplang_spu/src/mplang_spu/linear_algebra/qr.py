"""QR decomposition by Householder's reflections. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

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
    for i in range(min(m, n)):
        if i < m - 1:
            end, vector, factor = _reflection(rest[..., 0], target)
            right = rest[..., 1:]
            along = (vector[..., None] * right).sum(-2, keepdims=True)
            right = right - (factor * vector)[..., None] * along
        else:
            end, vector, right = rest[..., 0, 0], jnp.ones_like(rest[..., 0]), rest[..., 1:]
            factor = jnp.zeros_like(end)[..., None]
        rows.append(jnp.concatenate([end[..., None], right[..., 0, :]], axis=-1))
        vectors.append(vector[..., 1:])
        factors.append(factor[..., 0])
        rest = right[..., 1:, :]
    return _packed(a, rows, vectors, squares * scale), jnp.stack(factors, axis=-1)


def _reflection(x: Array, target: Target) -> tuple[Array, Array, Array]:
    """Return where a reflection takes the first axis, its vector, and its factor.

    There is none if nothing is left of a column that depends on those before.
    """
    first, square = x[..., :1], (x * x).sum(-1, keepdims=True)
    is_empty = square < tiny(target)
    inverse = inverse_root(jnp.maximum(square, tiny(target)))
    length = square * inverse
    is_negative = first < 0
    end = jnp.where(is_negative, length, -length)
    apart = jnp.where(is_negative, length - first, first + length)  # |first - end|
    ratio = 1 / jnp.where(is_empty, 1.0, first - end)
    vector = jnp.concatenate([jnp.ones_like(first), x[..., 1:] * ratio], axis=-1)
    factor = jnp.where(is_empty, 0.0, apart * inverse)
    return jnp.where(is_empty, first, end)[..., 0], vector, factor


def _packed(a: Array, rows: list[Array], vectors: list[Array], lengths: Array) -> Array:
    m, n = a.shape[-2:]
    before = [(0, 0)] * (a.ndim - 2)
    upper = [jnp.pad(row, [*before, (n - row.shape[-1], 0)]) for row in rows]
    lower = [jnp.pad(vector, [*before, (m - vector.shape[-1], 0)]) for vector in vectors]
    r = jnp.stack(upper, axis=-2) * lengths[..., None, :]
    packed = jnp.pad(r, [*before, (0, m - len(rows)), (0, 0)])
    below = jnp.pad(jnp.stack(lower, axis=-1), [*before, (0, 0), (0, n - len(lower))])
    return packed + below


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

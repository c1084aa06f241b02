"""Rotations of Jacobi's methods, in rounds of pairs that do not touch each other. Imports JAX."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from mplang_spu.linear_algebra.matrices import inverse_root_near_one, tiny
from mplang_spu.target import Target


def sweeps(n: int) -> int:
    """Return how often all pairs are rotated; measured, for residuals of 1e-6."""
    return 4 + max(0, (n - 1).bit_length() - 1)


def rotation(p: Array, q: Array, apart: Array, target: Target) -> tuple[Array, Array]:
    """Return cosine and sine of the rotations that make ``[[p, apart], [apart, q]]`` diagonal.

    Its direction need not be exact, since later sweeps correct it; its length is 1 up to 1e-7,
    whatever the direction.
    """
    d = q - p
    is_negative = d < 0
    size = jnp.where(is_negative, -d, d)
    twice = 2 * jnp.where(is_negative, -apart, apart)
    inverse = lax.rsqrt(size * size + twice * twice + tiny(target))
    cosine, sine = 1 + size * inverse, twice * inverse
    length = inverse_root_near_one(cosine * cosine + sine * sine)
    return cosine * length, sine * length


def rotated(rows: Array, cosine: Array, sine: Array) -> Array:
    """Rotate each row of the first half with that of the second half."""
    half = rows.shape[-2] // 2
    upper, lower = rows[..., :half, :], rows[..., half:, :]
    c, s = cosine[..., None], sine[..., None]
    return jnp.concatenate([c * upper - s * lower, s * upper + c * lower], axis=-2)


def next_pairs(rows: Array) -> Array:
    """Move rows such that each meets another one: the first stays, the others go in a circle.

    After as many rounds as there are other rows, each pair has met, and all are in place again.
    """
    half = rows.shape[-2] // 2
    if half == 1:
        return rows
    parts = [(0, 1), (half, half + 1), (1, half - 1), (half + 1, 2 * half), (half - 1, half)]
    return jnp.concatenate([rows[..., i:j, :] for i, j in parts], axis=-2)


def with_fixed_signs(rows: Array, vectors: Array) -> Array:
    """Return rows, negated where the vector that belongs to them points away from a fixed one.

    A vector's sign is that of the last rotations, where rounding may decide: the same matrix would
    have other signs on another device.
    """
    n = vectors.shape[-1]
    fixed = np.cos(np.arange(n) ** 2).astype(vectors.dtype)
    is_away = (vectors * fixed).sum(-1, keepdims=True) < 0
    return jnp.where(is_away, -rows, rows)

"""Random programs of integers: graphs of ops and conversions, and JAX's results of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIZE = 5

SAME = (  # of numbers of one type
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: x & y,
    lambda x, y: x ^ y,
    lambda x, y: ~x | y,
    lambda x, y: -x,
    lambda x, y: jnp.abs(x),
    lambda x, y: jnp.maximum(x, y),
    lambda x, y: jnp.where(x < y, x + y, y),
    lambda x, y: jnp.where(x < 3, x + 100, y),
    lambda x, y: jnp.clip(x, 0, 50),
    lambda x, y: jnp.sort(x),
    lambda x, y: jnp.cumsum(x, dtype=x.dtype),
    lambda x, y: jnp.full_like(x, jnp.sum(x, dtype=x.dtype)),
    lambda x, y: jnp.full_like(x, jnp.dot(x, y)),
    lambda x, y: jnp.full_like(x, jnp.max(x)),
    lambda x, y: jnp.roll(x, 1)[::-1],
    lambda x, y: x.at[2].add(y[1]),
    lambda x, y: x >> 3,
    lambda x, y: x << 2,
    lambda x, y: x // 5,
    lambda x, y: x % 100,
    lambda x, y: (x > y).astype(x.dtype) * 90 + 90,
    lambda x, y: jax.lax.fori_loop(0, 3, lambda i, c: c + y * i.astype(x.dtype), x),
    lambda x, y: jnp.argsort(x).astype(x.dtype),
)

_ROUNDED = (3, 4, 23, 24)  # quotients and remainders

IN_FM64 = (  # those that FM64 gets right
    *(op for i, op in enumerate(SAME) if i not in _ROUNDED),
    lambda x, y: jnp.where(x == y, x, -y),
    lambda x, y: jnp.take(x, jnp.clip(y.astype("int32"), 0, SIZE - 1)),
    lambda x, y: jnp.full_like(x, jnp.argmax(x).astype(x.dtype)),
    lambda x, y: jnp.full_like(x, jnp.argmin(x).astype(x.dtype)),
    lambda x, y: jnp.full_like(x, jnp.min(y)),
    lambda x, y: jax.lax.cummax(x),
    lambda x, y: jnp.sign(x),
    lambda x, y: jax.lax.shift_right_logical(x, x.dtype.type(2)),
    lambda x, y: jax.lax.top_k(x, SIZE)[0],
    lambda x, y: jnp.sort(x)[::-1],
    lambda x, y: jnp.bincount(jnp.clip(x.astype("int32"), 0, 4), length=SIZE).astype(x.dtype),
    lambda x, y: (x != 0).astype(x.dtype),
    lambda x, y: jnp.outer(x, y)[1],
    lambda x, y: jnp.any(x > y) * x,
    lambda x, y: jnp.full_like(x, jnp.prod(x[:2], dtype=x.dtype)),
    lambda x, y: x.at[1].set(y[0]),
)


def program(seed: int, ops=SAME):
    """Return a function of three arrays, and the arrays: a graph of ops and conversions."""
    rng = np.random.default_rng(seed)
    steps = [(rng.integers(len(ops)), rng.random(3), rng.choice(DTYPES)) for _ in range(8)]

    def fn(*args):
        made = list(args)
        for op, (first, second, convert), dtype in steps:
            x = made[-1 - int(first**2 * len(made))]
            y = made[-1 - int(second * len(made))].astype(x.dtype)
            z = ops[op](x, y)
            made.append(z.astype(dtype) if convert < 0.2 else z)
        return [*made[-3:], made[-1] > made[-2].astype(made[-1].dtype)]

    return fn, [numbers(rng, "int64"), *(numbers(rng, rng.choice(DTYPES)) for _ in range(2))]


def numbers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Return small numbers and any of the type; a ring of 128 bits holds all of them."""
    limits = np.iinfo(dtype)
    anything = rng.integers(limits.min, limits.max, SIZE, dtype, endpoint=True)
    small = rng.integers(max(limits.min, -9), 9, SIZE).astype(dtype)
    return np.where(rng.random(SIZE) < 0.5, anything, small)


def check_as_jax(fn, args, found) -> None:
    """Compare results with those of JAX."""
    with jax.enable_x64(True):
        wanted = jax.tree.map(np.asarray, fn(*map(jnp.asarray, args)))
    for mine, jaxs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(mine, jaxs)

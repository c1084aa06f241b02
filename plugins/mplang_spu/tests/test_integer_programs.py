"""Random programs of integers that leave their types, on SPU and in JAX, op by op."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

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


def program(seed: int):
    """Return a function of three arrays, and the arrays: a graph of ops and conversions."""
    rng = np.random.default_rng(seed)
    steps = [(rng.integers(len(SAME)), rng.random(3), rng.choice(DTYPES)) for _ in range(8)]

    def fn(*args):
        made = list(args)
        for op, (first, second, convert), dtype in steps:
            x = made[-1 - int(first**2 * len(made))]
            y = made[-1 - int(second * len(made))].astype(x.dtype)
            z = SAME[op](x, y)
            made.append(z.astype(dtype) if convert < 0.2 else z)
        return [*made[-3:], made[-1] > made[-2].astype(made[-1].dtype)]

    return fn, [numbers(rng, "int64"), *(numbers(rng, rng.choice(DTYPES)) for _ in range(2))]


def numbers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """Return small numbers and any of the type; a ring of 128 bits holds all of them."""
    limits = np.iinfo(dtype)
    anything = rng.integers(limits.min, limits.max, SIZE, dtype, endpoint=True)
    small = rng.integers(max(limits.min, -9), 9, SIZE).astype(dtype)
    return np.where(rng.random(SIZE) < 0.5, anything, small)


def check(seed: int, protocol: str) -> None:
    fn, args = program(seed)
    with jax.enable_x64(True):
        wanted = jax.tree.map(np.asarray, fn(*map(jnp.asarray, args)))
    for mine, jaxs in zip(spu_runner.run(fn, *args, protocol=protocol), wanted, strict=True):
        np.testing.assert_array_equal(mine, jaxs)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs_of_integers_wrap_as_jax_does(seed):
    check(seed, "ABY3")


@pytest.mark.long("200 random programs on two protocols, and 20 on CHEETAH")
@pytest.mark.parametrize(
    ("seed", "protocol"),
    [
        *((seed, protocol) for seed in range(5, 212) for protocol in ("ABY3", "SEMI2K")),
        *((seed, "CHEETAH") for seed in range(20)),
    ],
)
def test_so_do_two_hundred_on_each_protocol(seed, protocol):
    check(seed, protocol)

"""Integers at the edges of their types: quotients, remainders, signs, sums, orders, as NumPy's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

LONG = pytest.mark.long("37 functions on SPU")
FUNCTIONS = {
    "floor of the quotient": lambda x, y: x // y,
    "modulo": lambda x, y: x % y,
    "divmod": lambda x, y: jnp.divmod(x, y),
    "quotient": lambda x, y: jax.lax.div(x, y),
    "remainder": lambda x, y: jax.lax.rem(x, y),
    "fmod": lambda x, y: jnp.fmod(x, y),
    "by a literal": lambda x, y: (x // 3, x % 3, x // 4, x % 8),
    "by a negative literal": lambda x, y: x // (3 if x.dtype.kind == "u" else -3),
    "size": lambda x, y: (jnp.abs(x), jnp.abs(x) > 0),
    "negative": lambda x, y: (-x, -x > y),
    "sign": lambda x, y: jnp.sign(x),
    "sum": lambda x, y: (jnp.sum(x, dtype=x.dtype), jnp.sum(x, dtype=x.dtype) > 3),
    "product": lambda x, y: (jnp.prod(x, dtype=x.dtype), jnp.prod(x, dtype=x.dtype) // 2),
    "running product": lambda x, y: jnp.cumprod(x, dtype=x.dtype) > 0,
    "extremes": lambda x, y: (jnp.max(x), jnp.min(x), jnp.argmax(x), jnp.argmin(x)),
    "maximum of a sum": lambda x, y: jnp.maximum(x + y, y),
    "square and cube": lambda x, y: (x**2 > 0, x**3 // 2, jnp.power(x, 3) > 0),
    "clip": lambda x, y: jnp.clip(x + y, 0, 10),
    "where": lambda x, y: jnp.where(x + y > x, x + y, x),
    "float": lambda x, y: (x - y).astype(jnp.float32),
    "bool": lambda x, y: (x + y).astype(bool),
    "order": lambda x, y: (jnp.sort(x + y), jnp.argsort(x * 2)),
    "steps": lambda x, y: jnp.diff(x) > 0,
    "members": lambda x, y: jnp.isin(x + y, y),
    "bits": lambda x, y: (jax.lax.population_count(x * y), ((x ^ y) + (x & y)) > 0),
    "shifts": lambda x, y: (x << 2) >> 1,
    "outer product": lambda x, y: jnp.outer(x, y) > 0,
    "running maximum": lambda x, y: jax.lax.cummax(x + y),
    "middle": lambda x, y: (x + y) // 2,
}


def edges(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    limits = np.iinfo(dtype)
    low, one = (-7, -1) if limits.min else (9, 2)
    x = np.array([limits.min, limits.min + 1, low, one, 0, 1, 7, limits.max - 1, limits.max], dtype)
    return x, x[[3, 5, 6, 8, 7, 0 if limits.min else 2, 2, 6, 3]]


def check(dtype: str, protocol: str, field: str) -> None:
    def fn(x, y):
        return {name: each(x, y) for name, each in FUNCTIONS.items()}

    args = edges(dtype)
    found = spu_runner.run(fn, *args, protocol=protocol, field=field)
    wanted = spu_runner.numpy_of(fn, *args)
    for name in FUNCTIONS:
        pairs = zip(jax.tree.leaves(found[name]), jax.tree.leaves(wanted[name]), strict=True)
        for mine, numpys in pairs:
            np.testing.assert_array_equal(mine, numpys, err_msg=name)


@pytest.mark.parametrize(
    ("protocol", "dtype"),
    [
        ("ABY3", "int32"),
        pytest.param("ABY3", "int64", marks=LONG),
        *(
            pytest.param(protocol, dtype, marks=LONG)
            for protocol in ("ABY3", "SEMI2K", "CHEETAH")
            for dtype in ("int8", "uint8", "uint32")
        ),
        *(
            pytest.param(protocol, dtype, marks=LONG)
            for protocol in ("SEMI2K", "CHEETAH")
            for dtype in ("int32", "int64")
        ),
    ],
)
def test_integers_at_the_edges_are_those_of_numpy(protocol, dtype):
    check(dtype, protocol, "FM128")


def test_the_smallest_integer_by_two_is_numpys_also_where_xlas_is_not():
    """XLA takes ``abs`` for positive while it optimizes: ``abs(-128) // 2`` is 64 there."""
    x = np.array([-128, -127, 127], np.int8)
    found = spu_runner.run(lambda x: jnp.abs(x) // 2, x)
    np.testing.assert_array_equal(found, np.abs(x) // 2)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64"])
def test_integers_divided_by_zero_give_what_xla_gives(dtype):
    def fn(x, y):
        by_literal = jax.lax.div(x, jnp.zeros_like(x)), jax.lax.rem(x, jnp.zeros_like(x))
        return x // y, x % y, jax.lax.div(x, y), jax.lax.rem(x, y), x // y > 3, by_literal

    x, y = np.array([0, 1, 7, 100, 100], dtype), np.array([0, 0, 0, 0, 9], dtype)
    for mine, xlas in zip(
        jax.tree.leaves(spu_runner.run(fn, x, y)),
        jax.tree.leaves(spu_runner.numpy_of(fn, x, y)),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, xlas)

"""Every reduction, sort, scan, comparison and conversion on every type, extremes included."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
ALL = [*INTEGERS, *FLOATS, "float16", "bool"]
FIELDS = {"FM128": 126, "FM64": 62}
BOTH = ["FM128", pytest.param("FM64", marks=pytest.mark.slow)]
RNG = np.random.default_rng(3)


def numbers(dtype: str, field: str) -> np.ndarray:
    """Return numbers of a type, including the extremes that a field can hold."""
    if dtype == "bool":
        return np.array([True, False, True, True, False, False, True])
    if dtype.startswith("float"):
        return np.array([0, 1.5, -1.5, 0.25, -300, 2.0**10, 7], dtype)
    limits = np.iinfo(dtype)
    low = max(limits.min, -(2 ** FIELDS[field]))
    high = min(limits.max, 2 ** FIELDS[field] - 1)
    return np.array([low, high, 0, 1, high // 3, low // 3, 7], dtype)


def small(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return numbers(dtype, "FM64")
    return (RNG.permutation(7) - (0 if dtype.startswith("u") else 3)).astype(dtype)


ORDERS = {
    "max": jnp.max, "min": jnp.min, "argmax": jnp.argmax, "argmin": jnp.argmin,
    "sort": jnp.sort, "argsort": jnp.argsort, "cummax": jax.lax.cummax, "cummin": jax.lax.cummin,
    "median": jnp.median,
    "compare": lambda x: (x < x[::-1], x == x[::-1], x >= x[::-1], x != x[2]),
    "choose": lambda x: (jnp.maximum(x, x[::-1]), jnp.where(x > x[2], x, x[::-1])),
}  # fmt: skip

ABSENT = [(name, "bool") for name in ("median", "cummax", "cummin")]  # JAX has none
ABSENT += [("median", "float16")]  # refused, below
ORDERED = list(itertools.product(ORDERS, ALL))
CONVERSIONS = [
    (source, target)
    for source, target in itertools.product(ALL, ALL)
    if not (target == "float16" and source in FLOATS)  # refused, below
]

TOTALS = {
    "sum": jnp.sum, "prod": jnp.prod, "cumsum": jnp.cumsum, "cumprod": jnp.cumprod,
    "mean": jnp.mean, "any": lambda x: (x > 1).any(), "all": lambda x: (x > 1).all(),
    "dot": lambda x: x @ x, "var": jnp.var,
}  # fmt: skip


@pytest.mark.parametrize("field", BOTH)
@pytest.mark.parametrize(("name", "dtype"), [each for each in ORDERED if each not in ABSENT])
def test_an_order_is_that_of_numpy(name, dtype, field):
    x = numbers(dtype, field)
    if name == "median" and dtype in INTEGERS:
        x = small(dtype)  # it is a mean of two, as a float
    exact = spu_runner.numpy_of(ORDERS[name], x)
    assert spu_runner.off(spu_runner.run(ORDERS[name], x, field=field), exact) < 1e-3


@pytest.mark.parametrize("field", BOTH)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", TOTALS)
def test_a_total_is_that_of_numpy(name, dtype, field):
    x = small(dtype)
    exact = spu_runner.numpy_of(TOTALS[name], x)
    assert spu_runner.off(spu_runner.run(TOTALS[name], x, field=field), exact) < 1e-3


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_and_products_of_integers_wrap_as_those_of_numpy(dtype):
    x = numbers(dtype, "FM64")
    for fn in (jnp.sum, lambda x: x + x[1], lambda x: x * x[1], lambda x: x - x[0]):
        assert spu_runner.off(spu_runner.run(fn, x), spu_runner.numpy_of(fn, x)) == 0


@pytest.mark.parametrize("field", BOTH)
@pytest.mark.parametrize(("source", "target"), CONVERSIONS)
def test_a_conversion_is_that_of_numpy(source, target, field):
    x = small(source)
    if source.startswith("float"):
        x = np.array([0, 1.5, 2.999, 100, 7], source)
        x = x if target.startswith("u") else np.concatenate([x, -x])
    elif target.startswith("u"):
        x = np.abs(x)
    with jax.enable_x64(True):
        exact = np.asarray(jnp.asarray(x).astype(target))
    wide = lambda x, _: x.astype(target)  # noqa: E731
    found = spu_runner.run(wide, x, np.int64(0), field=field)  # the second one brings 64-bit types
    assert found.dtype == exact.dtype
    assert spu_runner.off(found, exact) < 1e-3


@pytest.mark.parametrize("fn", [jnp.sum, jnp.median, lambda x: x.astype(jnp.float32) * 2 + x])
def test_what_makes_float16_of_other_floats_is_refused(fn):
    fn = fn if fn is not jnp.median else lambda x: jnp.mean(x)
    with pytest.raises(ValueError, match="convert of f32 to f16: there is none; keep to float32"):
        spu_runner.run(lambda x: fn(x).astype(jnp.float16), np.array([1, 2], np.float16))

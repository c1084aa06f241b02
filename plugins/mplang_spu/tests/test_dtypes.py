"""Every reduction, sort, scan, comparison and conversion on every type, extremes included.

All functions of a type are one program; the slow tests run each by itself, in both fields.
"""

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
ORDERED = [each for each in itertools.product(ORDERS, ALL) if each not in ABSENT]
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


def check_orders(names, dtype, field):
    def orders(x, few):
        return [ORDERS[name](few if name == "median" else x) for name in names]

    x = numbers(dtype, field)
    few = small(dtype) if dtype in INTEGERS else x  # a median is a mean of two, as a float
    check(orders, x, few, field=field)


def check_totals(names, dtype, field):
    check(lambda x: [TOTALS[name](x) for name in names], small(dtype), field=field)


def check_conversions(source, targets, field):
    def converted(x, positive, _):  # the last one brings 64-bit types
        return [(positive if target.startswith("u") else x).astype(target) for target in targets]

    x = small(source)
    if source.startswith("float"):
        x = np.array([0, 1.5, 2.999, 100, 7], source)
        x = np.concatenate([x, -x])
    found = check(converted, x, np.abs(x), np.int64(0), field=field)
    assert [each.dtype.name for each in found] == targets


def check(fn, *args, field):
    found, exact = spu_runner.run(fn, *args, field=field), spu_runner.numpy_of(fn, *args)
    for mine, numpy in zip(found, exact, strict=True):
        assert spu_runner.off(mine, numpy) < 1e-3, (mine, numpy)
    return found


FEW = {"bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"}
LONG = pytest.mark.long("as for a type of another width")


@pytest.mark.parametrize(
    "dtype", [pytest.param(each, marks=[LONG] * (each not in FEW)) for each in ALL]
)
def test_orders_are_those_of_numpy(dtype):
    check_orders([name for name, each in ORDERED if each == dtype], dtype, "FM128")


@pytest.mark.parametrize(
    "dtype", [pytest.param(each, marks=[LONG] * (each not in FEW)) for each in (*INTEGERS, *FLOATS)]
)
def test_totals_are_those_of_numpy(dtype):
    check_totals(TOTALS, dtype, "FM128")


@pytest.mark.parametrize("source", ALL)
def test_conversions_are_those_of_numpy(source):
    check_conversions(source, [target for each, target in CONVERSIONS if each == source], "FM128")


@pytest.mark.slow("188 programs on SPU")
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("name", "dtype"), ORDERED)
def test_an_order_by_itself(name, dtype, field):
    check_orders([name], dtype, field)


@pytest.mark.slow("180 programs on SPU")
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", TOTALS)
def test_a_total_by_itself(name, dtype, field):
    check_totals([name], dtype, field)


@pytest.mark.slow("284 programs on SPU")
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("source", "target"), CONVERSIONS)
def test_a_conversion_by_itself(source, target, field):
    check_conversions(source, [target], field)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_and_products_of_integers_wrap_as_those_of_numpy(dtype):
    x = numbers(dtype, "FM64")
    for fn in (jnp.sum, lambda x: x + x[1], lambda x: x * x[1], lambda x: x - x[0]):
        assert spu_runner.off(spu_runner.run(fn, x), spu_runner.numpy_of(fn, x)) == 0


@pytest.mark.parametrize("fn", [jnp.sum, jnp.median, lambda x: x.astype(jnp.float32) * 2 + x])
def test_what_makes_float16_of_other_floats_is_refused(fn):
    fn = fn if fn is not jnp.median else lambda x: jnp.mean(x)
    with pytest.raises(ValueError, match="convert of f32 to f16: there is none; keep to float32"):
        spu_runner.run(lambda x: fn(x).astype(jnp.float16), np.array([1, 2], np.float16))

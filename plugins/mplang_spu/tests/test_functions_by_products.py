"""Smooth functions by products: their errors, their bounds, and where libspu's own are taken."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner
from mplang_analysis import Interval
from mplang_spu.lowering import Target, lower, reciprocals
from mplang_spu.lowering.polynomials import start_of_newton

CHEETAH = pytest.param("CHEETAH", marks=pytest.mark.slow("a protocol of seconds"))
PROTOCOLS = pytest.mark.parametrize("protocol", ["ABY3", "SEMI2K", CHEETAH])
WIDE = np.float32([-1e6, -500, -30, -20, -9, -3, -1, -1e-3, 0, 1e-3, 0.5, 2, 5, 12, 28, 60, 1e6])

FUNCTIONS = {
    "sigmoid": jax.nn.sigmoid,
    "by hand": lambda x: 1 / (1 + jnp.exp(-x)),
    "tanh": jnp.tanh,
    "decay": lambda x: jnp.exp(-jnp.abs(x)),
    "bell": lambda x: jnp.exp(-x * x),
    "erf": jax.lax.erf,
    "softmax": jax.nn.softmax,
    "slope": lambda x: jax.vmap(jax.grad(jax.nn.sigmoid))(x),
    "bounded divisor": lambda x: jnp.tanh(x) / (3 - 2 * jax.nn.sigmoid(x)),
}


def run(name, x, **how):
    return spu_runner.run(FUNCTIONS[name], x, **how), spu_runner.float64_of(FUNCTIONS[name], x)


@PROTOCOLS
@pytest.mark.parametrize(("field", "error"), [("FM128", 5e-7), ("FM64", 3e-4)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small_at_all_sizes(name, protocol, field, error):
    x = WIDE if field == "FM128" or name != "bell" else WIDE[np.abs(WIDE) < 1e3]
    x = x if name != "bell" else x[np.abs(x) < 1e6]  # a square of 1e6 needs more
    found, exact = run(name, x, protocol=protocol, field=field)
    assert np.abs(found - exact).max() < error


@PROTOCOLS
def test_exp_is_exact_up_to_the_largest_product(protocol):
    x = np.linspace(-40, 31.8, 80).astype(np.float32)
    found = spu_runner.run(jnp.exp, x, protocol=protocol)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(found - exact) < 3e-6 * exact + 1e-10).all()


def test_exp_of_smaller_fields_reaches_as_far_as_before():
    x = np.float32([-10, 1, 18, 21.5])
    found = spu_runner.run(jnp.exp, x, field="FM64")
    np.testing.assert_allclose(found, np.exp(x), rtol=5e-4, atol=1e-4)


@pytest.mark.parametrize("count", [2, 10, 64, 1000])
def test_a_softmax_of_many_terms(count):
    x = np.random.default_rng(0).normal(size=(3, count)).astype(np.float32) * 4
    x[1] = 2.0  # all equal: the sum is the number of terms
    found = spu_runner.run(lambda x: jax.nn.softmax(x, axis=1), x)
    exact = spu_runner.float64_of(lambda x: jax.nn.softmax(x, axis=1), x)
    assert np.abs(found - exact).max() < 2e-6  # a thousand small errors add up


def test_a_softmax_over_other_axes_and_with_others_maximum():
    x = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32) * 5

    def mixed(x):  # the maximum is over another axis than the sum, so that sums may be below 1
        return jnp.exp(x - x.max(axis=0, keepdims=True)) / jnp.exp(
            x - x.max(axis=0, keepdims=True)
        ).sum(axis=1, keepdims=True)

    for fn in (lambda x: jax.nn.softmax(x, axis=(0, 2)), lambda x: jax.nn.softmax(x, 0), mixed):
        found, exact = spu_runner.run(fn, x), spu_runner.float64_of(fn, x)
        assert np.abs(found - exact).max() < 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 1)])
def test_each_type_of_float_and_empty_arrays(dtype, shape):
    x = np.full(shape, 1.5, dtype)
    found = spu_runner.run(lambda x: (jax.nn.sigmoid(x), jnp.tanh(x), jnp.exp(-jnp.abs(x))), x)
    for mine, exact in zip(
        found, (1 / (1 + np.exp(-1.5)), np.tanh(1.5), np.exp(-1.5)), strict=True
    ):
        assert mine.dtype == dtype
        assert mine.shape == shape
        np.testing.assert_allclose(
            mine.astype(float), exact, atol=1e-3 if dtype == np.float16 else 5e-7
        )


def test_a_rounded_quotient_is_exact_also_where_its_divisor_is_bounded():
    x, some = np.float32([21, 28, 35]), np.ones((3, 6), np.float32)
    fn = lambda x, m: jnp.floor(x / ((m > 0).sum(1) + 1))  # noqa: E731
    np.testing.assert_array_equal(spu_runner.run(fn, x, some), [3, 4, 5])


@pytest.mark.parametrize("field", ["FM64", "FM128"])
def test_numbers_beyond_all_products(field):
    x = np.float32([1e8, -3e9, 1e10, 40, -40]) * (1 if field == "FM64" else 1e8)
    for fn in (jnp.tanh, jax.nn.sigmoid, jax.lax.erf, lambda x: jnp.exp(-jnp.abs(x))):
        found, exact = spu_runner.run(fn, x, field=field), spu_runner.float64_of(fn, x)
        assert np.abs(found - exact).max() < 1e-4


def test_small_results_keep_their_digits():
    x = np.float32([-20, -16, -14, -10, -5])
    for fn, error in ((jax.nn.sigmoid, 1e-3), (jnp.exp, 1e-3)):
        found, exact = spu_runner.run(fn, x), spu_runner.float64_of(fn, x)
        assert np.abs(found / exact - 1).max() < error
    found = spu_runner.run(lambda x: jnp.exp(-jnp.abs(x)) * 1e9, x)
    assert np.abs(found / (np.exp(x.astype(float)) * 1e9) - 1).max() < 1e-3


@pytest.mark.parametrize("shape", [(2, 1), (3, 1, 1)])
def test_a_softmax_of_one_term(shape):
    x = np.full(shape, 3.0, np.float32)
    axes = tuple(range(1, len(shape)))
    np.testing.assert_allclose(spu_runner.run(lambda x: jax.nn.softmax(x, axis=axes), x), 1.0)
    fn = lambda x: x / jnp.where(x > 0, 3.0, 3.0)  # noqa: E731
    np.testing.assert_allclose(spu_runner.run(fn, x), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "largest",
    [
        lambda x: jnp.max(x, -1, keepdims=True, initial=0.0),
        lambda x: jnp.maximum(x.max(-1, keepdims=True), 0.0),
        lambda x: jax.lax.reduce(x, x.dtype.type(0), jax.lax.max, (1,))[:, None],
    ],
)
def test_a_sum_below_one_is_no_sum_of_a_softmax(largest):
    x = np.float32([[-10, -11, -12]])

    def fn(x):
        e = jnp.exp(x - largest(x))
        return e / e.sum(-1, keepdims=True)

    found, exact = spu_runner.run(fn, x), spu_runner.float64_of(fn, x)
    assert np.abs(found - exact).max() < 1e-3


@pytest.mark.parametrize(("field", "fxp"), [("FM64", 24), ("FM64", 28), ("FM128", 60)])
def test_many_fraction_bits_leave_no_room_for_products(field, fxp):
    x = np.linspace(-9, 0, 10).astype(np.float32)
    for fn in (jax.nn.softmax, jax.nn.sigmoid):
        found = spu_runner.run(fn, x, field=field, fxp=fxp)
        assert np.abs(found - spu_runner.float64_of(fn, x)).max() < 1e-3


def test_bounds_are_rounded_so_that_all_members_write_the_same():
    low, high = np.exp(0.1), np.cosh(2.0)
    seen = {
        reciprocals._rounded_outward(Interval(low * (1 + a), high * (1 + b)))
        for a, b in itertools.product(np.arange(-3, 4) * 2.0**-52, repeat=2)
    }
    (bounds,) = seen
    assert bounds.low <= low <= high <= bounds.high
    assert reciprocals._rounded_outward(Interval(1, 1)).low < 1


def test_an_argmax_with_other_initial_values_is_left_as_it_is():
    def reducer(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(a[0] > b[0], a[0], b[0]), jnp.where(first, a[1], b[1])

    x = np.float32([1, 2, 3, 2])
    fn = lambda x: jax.lax.reduce(  # noqa: E731
        (x, jnp.arange(4)), (np.float32(5), np.int32(7)), reducer, (0,)
    )[1]
    assert spu_runner.run(fn, x) == 7


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.int64, bool])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((1,), 0), ((5, 10), 1), ((2, 3, 4), 1)])
def test_argmax_and_argmin_choose_the_first_of_equal_ones(dtype, shape, axis):
    x = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    for fn in (jnp.argmax, jnp.argmin):
        found = spu_runner.run(lambda x, fn=fn: fn(x, axis=axis), x)
        np.testing.assert_array_equal(found, np.asarray(fn(x, axis=axis)))


@PROTOCOLS
@pytest.mark.parametrize(
    ("field", "low", "high", "error"), [("FM128", -6, 20, 1e-6), ("FM64", -1, 9, 3e-4)]
)
def test_quotients_by_few_divisors_of_all_sizes(protocol, field, low, high, error):
    sizes = 10.0 ** np.arange(low, high)
    divisors = (sizes * np.resize([1, -1.5, 7], len(sizes))).astype(np.float32)
    x = np.random.default_rng(0).normal(size=(6, len(sizes))).astype(np.float32) * divisors
    found = spu_runner.run(lambda x, d: x / d, x, divisors, protocol=protocol, field=field)
    assert np.abs(found - x / divisors).max() < error * 4


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
def test_standardized_along_each_axis(axis):
    x = np.random.default_rng(0).normal(size=(9, 8, 7)).astype(np.float32) * 50 + 200

    def standardized(x):
        return (x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True)

    found = spu_runner.run(standardized, x)
    assert np.abs(found - spu_runner.float64_of(standardized, x)).max() < 3e-6


# -- where libspu's own are taken


def names_in(fn, target):
    text = lower(spu_runner.stablehlo(fn, np.float32([1, 2]), target=target), target).text
    return {name for name in ("logistic", "exponential", "divide") if f"stablehlo.{name} " in text}


def test_products_take_no_function_of_libspu():
    target = Target("CHEETAH", "FM128", 40)
    assert not [name for name, fn in FUNCTIONS.items() if names_in(fn, target)]


@pytest.mark.parametrize(
    ("target", "fn", "taken"),
    [
        (Target("ABY3", "FM128", 40, sigmoid_mode="real"), jax.nn.sigmoid, {"logistic"}),
        (Target("ABY3", "FM128", 40, sigmoid_mode="seg3"), jax.nn.sigmoid, {"logistic"}),
        (Target("ABY3", "FM128", 40, exp_mode="pade"), jnp.exp, {"exponential"}),
        (Target("ABY3", "FM64", 18), jnp.exp, {"exponential"}),
        (Target("ABY3", "FM64", 12), jax.nn.sigmoid, {"logistic"}),
        (Target("ABY3", "FM128", 40), lambda x: 1 / x, {"divide"}),
    ],
)
def test_others_are_taken_where_they_are_asked_for_or_reach_farther(target, fn, taken):
    assert names_in(fn, target) == taken


@pytest.mark.parametrize(("low", "high"), [(1, 2), (0.5, 1), (1 / 1000, 1), (0.9, 1)])
def test_the_start_of_newtons_method_errs_as_it_says(low, high):
    factors, error = start_of_newton(low, high)
    x = np.linspace(low, high, 1001)
    off = x * np.polynomial.Polynomial(factors)(x) - 1
    assert np.abs(off).max() == pytest.approx(error, rel=1e-6)

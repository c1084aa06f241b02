"""SPU's numbers: NumPy-style functions give NumPy's results, on each protocol."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

TOLERANCE = 1e-3
RNG = np.random.default_rng(7)
SALARIES = RNG.lognormal(10.8, 0.5, 13_810).astype(np.float32)
BIDS = np.array([310, 925, 870, 924, 12])
PROTOCOLS = [
    "ABY3",
    pytest.param("SEMI2K", marks=pytest.mark.slow("57 programs more on SPU")),
    pytest.param("CHEETAH", marks=pytest.mark.slow("57 programs, and CHEETAH is the slowest")),
]


def f32(*numbers):
    return np.array(numbers, np.float32)


def fifties(n, value=50.0):
    return np.full(n, value, np.float32)


def product_of_means(x, y):
    return x.mean() * y.mean()


def whole(x, by):
    return x // by, x % by, jnp.floor(x / by), jnp.ceil(x / by), (x / by).astype(jnp.int32)


AGES = RNG.integers(18, 99, 150)

CASES = {
    "histogram of ages": (lambda x: jnp.histogram(x, bins=9)[0], np.append(AGES, [10, 100])),
    "histogram in a range": (lambda x: jnp.histogram(x, 10, (0, 100))[0], AGES.astype(np.float32)),
    "not below the median": (lambda x: (x >= jnp.median(x)).sum(), AGES.astype(np.float32)),
    "the largest, scaled": (
        lambda x: ((x - x.min()) / (x.max() - x.min()) >= 1).sum(),
        RNG.normal(50, 9, 50).astype(np.float32),
    ),
    "a product that is a limit": (
        lambda x: (x * 0.7 >= 7, x * 0.1 == 1),
        np.arange(9, 12, dtype=np.float32),
    ),
    "mean, std, median, percentile, max": (
        lambda x: (x.mean(), x.std(), jnp.median(x), jnp.percentile(x, 90), x.max()),
        SALARIES[:600],
    ),
    **{f"mean of {n}": (jnp.mean, fifties(n)) for n in (100, 569, 1000, 3000, 40_000, 300_000)},
    "x @ x / n": (lambda x: x @ x / len(x), fifties(10_000)),
    "times 1/n": (lambda x: x.sum() * (1 / len(x)), fifties(60_000)),
    "mean of columns": (lambda x: x.mean(axis=0), np.stack([fifties(40_000)] * 2, 1)),
    "product of means": (product_of_means, fifties(10_000, 3), fifties(10_000, 2)),
    "product of many means": (product_of_means, fifties(200_000, 3), fifties(200_000, 2)),
    "centred correlation": (
        lambda x, y: ((x - x.mean()) * (y - y.mean())).mean() / (x.std() * y.std()),
        *(RNG.normal(size=(2, 20_000)) * [[9], [4]] + 5).astype(np.float32),
    ),
    "max of int64": (lambda x: (x.max(), x.argmax(), x.min(), x.argmin()), BIDS),
    "max of uint64": (lambda x: (x.max(), x.argmax(), x.min(), x.argmin()), BIDS.astype(np.uint64)),
    "cummax of int64": (jax.lax.cummax, BIDS),
    "cummin of uint64": (jax.lax.cummin, BIDS.astype(np.uint64)),
    "std of small": (lambda x: (jnp.std(x), jnp.linalg.norm(x)), BIDS.astype(np.float32)),
    "corrcoef": (jnp.corrcoef, np.stack([f32(310, 925, 870, 924, 12), f32(3, 9, 7, 9, 1)])),
    "sqrt": (jnp.sqrt, 2.0 ** np.arange(-8, 70, dtype=np.float32)),
    "rsqrt": (jax.lax.rsqrt, 2.0 ** np.arange(-8, 30, dtype=np.float32)),
    "log": (jnp.log, 2.0 ** np.arange(-8, 70, dtype=np.float32)),
    "log1p": (jnp.log1p, 2.0 ** np.arange(-8, 60, dtype=np.float32)),
    "x / x": (lambda x: (x / x, x / -x), 2.0 ** np.arange(-8, 70, dtype=np.float32)),
    "exp to 2^46": (jnp.exp, np.linspace(-20, 31, 40, dtype=np.float32)),
    "exp of a quotient": (lambda x: jnp.exp(x / 100), f32(925, 12)),
    "power": (lambda x: (x**1.5, x**-2.5, x**7, x**-3), f32(0.5, 3, 40)),
    "epsilon": (lambda x: x * 1e-7, f32(1e8, 5e7)),
    "tanh": (jnp.tanh, np.linspace(-20, 20, 81, dtype=np.float32)),
    "tanh near 0": (jnp.tanh, f32(1e-4, -1e-3, 1e-2)),
    "gelu": (jax.nn.gelu, np.linspace(-15, 15, 61, dtype=np.float32)),
    "exact gelu": (
        lambda x: jax.nn.gelu(x, approximate=False),
        np.linspace(-15, 15, 61, dtype=np.float32),
    ),
    "erf": (jax.scipy.special.erf, np.linspace(-6, 6, 49, dtype=np.float32)),
    "expm1 near 0": (jnp.expm1, f32(1e-4, -1e-3, 1e-2)),
    "hyperbolic": (lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x)), f32(-9, -0.1, 0.3, 8)),
    "inverse": (lambda x: (jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x)), f32(-0.9, -0.1, 0.5)),
    "acosh, tan": (lambda x: (jnp.arccosh(x), jnp.tan(x)), f32(1.2, 4, 900)),
    "floor and remainder": (lambda x: whole(x, 7.0), f32(924, 923, 7, 1, 0, -924, -923, 14)),
    "negative divisor": (lambda x: whole(x, -3.0), f32(924, 923, 3, 1, 0, -924, -923, 14)),
    "secret divisor": (whole, f32(924, 923, 7, -924, -923, 35), f32(7, 7, 7, 7, -7, 5)),
    "one-hot of a remainder": (
        lambda x: jax.nn.one_hot(x % 3, 3),
        np.arange(9.0, dtype=np.float32),
    ),
    "to integers": (lambda x: x.astype(jnp.int32), f32(-0.003, -1.5, 1.5, 2.999, -3, 3)),
    "rounded": (
        lambda x: (jnp.round(x), jax.lax.round(x), jnp.ceil(x), jnp.trunc(x)),
        f32(-924, -1.6, -0.4, 0.4, 1.6, 924),
    ),
    "integer division": (
        lambda x, y: (x // y, x % y, jax.lax.div(x, y), jax.lax.rem(x, y)),
        np.array([7, -7, 10**9 + 7, -(2**40), 2**61, 5, 0]),
        np.array([2, 2, 10, 7, 3, -5, 3]),
    ),
    "halves": (
        lambda x, y: (x // 2, x % 8, jax.lax.div(x, np.int32(-4)), y // np.uint32(2)),
        np.int32([7, -7, 2**31 - 1, -(2**31), 0, 8]),
        np.uint32([7, 2**32 - 1, 0, 8, 1, 2]),
    ),
    "masked softmax": (lambda x: jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf)), f32(1, -2, 3, 0.5)),
    "largest": (lambda x: jax.lax.top_k(x, 5), RNG.normal(size=300).astype(np.float32)),
    "sorted": (lambda x: (jnp.sort(x), jnp.argsort(x)), RNG.normal(size=50).astype(np.float32)),
    "scans": (
        lambda x: (jnp.cumsum(x), jax.lax.cummax(x), jax.lax.cummin(x, reverse=True)),
        RNG.normal(size=100).astype(np.float32),
    ),
    "scans of columns": (
        lambda x: (jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0), jax.lax.cumsum(x, reverse=True)),
        RNG.normal(size=(5, 4)).astype(np.float32),
    ),
    "sums over axes": (
        lambda x: (x.sum(), x.sum(0), x.sum((0, 2)), x.sum((1, 2)), x.sum(1, keepdims=True)),
        RNG.normal(size=(3, 4, 5)).astype(np.float32),
    ),
    "a loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s / 7 + x.mean() + jnp.sqrt(s * s), x),
        RNG.normal(size=7).astype(np.float32),
    ),
}
"""What a review of the first version found wrong, and its siblings."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", CASES)
def test_a_result_is_that_of_numpy(name, protocol):
    fn, *args = CASES[name]
    found = spu_runner.run(fn, *args, protocol=protocol)
    assert spu_runner.off(found, spu_runner.numpy_of(fn, *args)) < TOLERANCE


IN_FM64 = {
    name: case
    for name, case in CASES.items()
    if not {"sqrt", "log", "log1p", "x / x", "exp to 2^46", "power", "integer division", "rsqrt",
            "mean, std, median, percentile, max", "acosh, tan", "hyperbolic"} & {name}
}  # fmt: skip
IN_FM64 |= {
    "sqrt": (jnp.sqrt, 2.0 ** np.arange(-8, 31, dtype=np.float32)),
    "log": (jnp.log, 2.0 ** np.arange(-6, 31, dtype=np.float32)),
    "x / x": (lambda x: (x / x, x / -x), 2.0 ** np.arange(-3, 31, dtype=np.float32)),
    "integer division": (
        lambda x, y: (x // y, x % y),
        np.array([7, -7, 10**9 + 7, -(2**40), 5, 0]),
        np.array([2, 2, 10, 7, -5, 3]),
    ),
}


@pytest.mark.slow("50 programs on SPU")
@pytest.mark.parametrize("name", IN_FM64)
def test_the_smaller_field_is_right_for_what_it_holds(name):
    fn, *args = IN_FM64[name]
    found = spu_runner.run(fn, *args, field="FM64")
    assert spu_runner.off(found, spu_runner.numpy_of(fn, *args)) < TOLERANCE


@pytest.mark.parametrize(("field", "fxp"), [("FM32", 8), ("FM64", 10), ("FM64", 26), ("FM128", 20)])
def test_other_fields_and_fraction_bits_are_as_right_as_they_can_be(field, fxp):
    def fn(x, i):
        more = () if field == "FM32" else (jnp.sqrt(x), x.std(), i // 3, x / (x + 1))
        return x / 3, x * 1.3, x * 0.3, x.mean(), jnp.floor(x / 2), *more

    args = f32(1, 2, 6, 9), np.int32([7, -7, 100, 0])
    found = spu_runner.run(fn, *args, field=field, fxp=fxp)
    assert spu_runner.off(found, spu_runner.numpy_of(fn, *args)) < 8 * 2.0**-fxp + 1e-4


@pytest.mark.parametrize("fn", [jnp.sqrt, jnp.exp, jax.nn.sigmoid, lambda x: 1 / x, jnp.tanh])
def test_what_a_ring_of_32_bits_has_not_is_refused(fn):
    with pytest.raises(ValueError, match="SPU cannot run stablehlo.* in FM32; take FM64"):
        spu_runner.run(fn, f32(1, 2), field="FM32")


ATTACKED = {
    "integers by constants": (
        lambda x, y: (x // 3, x % 3, x // 60, x % 7, x // 10, y // 10, y % 1000),
        np.int32([300_000_002, 900_000_001, 2_000_000_000, 1_795_000_000, 2**31 - 1, -(2**31)]),
        np.uint32([2**32 - 1, 300_000_002, 5, 0, 7, 10]),
    ),
    "constant by secret": (
        lambda x: (jnp.floor(1e6 / x), 1e6 // x, 1000.0 % x, (1e6 / x).astype(jnp.int32)),
        f32(10, 5, 1000, 0.5),
    ),
    "halves rounded": (
        lambda x, y: (jnp.round(x / y), jax.lax.round(x / y), jnp.round(x / 2), jnp.round(x * 0.5)),
        f32(3, 7, 5, -7, -3, 4),
        f32(2, 2, 2, 2, 2, 2),
    ),
    "variance of near numbers": (jnp.var, f32(1e6, 1e6 + 1, 1e6 + 2)),
    "large remainders": (lambda x: (x % 7, x // 7), f32(1e8, 123456, 7e6)),
    "exp beside the largest of another axis": (
        lambda x: jnp.exp(x - x.max(0)[:, None]),
        f32(30, 0, 5, 0).reshape(2, 2),
    ),
    "empty": (
        lambda x: (jnp.all(x > 0, axis=0), jnp.max(x, axis=0, initial=-5.0), x.sum(0)),
        np.zeros((0, 3), np.float32),
    ),
    "few index bits": (
        lambda i: jnp.zeros(300).at[i].add(1.0),
        np.array([0, 255, 255, 3], np.uint8),
    ),
}
"""What an attack on the lowering found."""


DIVISORS = [3, 7, 86_400, 1_000_000, 12_345_678, 86_400_000, 604_800_000, -86_400_000, 10**15 + 7]


@pytest.mark.parametrize(
    "protocol",
    ["SEMI2K", pytest.param("ABY3", marks=pytest.mark.slow("350 numbers by 10 divisors, again"))],
)
@pytest.mark.parametrize(
    "size",
    [
        10**7,
        4 * 10**18,
        *(
            pytest.param(size, marks=pytest.mark.long("350 numbers by 10 divisors, again"))
            for size in (2 * 10**12, 10**15)
        ),
    ],
)
def test_integers_are_divided_exactly(size, protocol):
    rng = np.random.default_rng(size)
    x = rng.integers(-size, size, 200)
    days = rng.integers(-size // 86_400_000, size // 86_400_000, 50) * 86_400_000
    x = np.concatenate([x, days, days - 1, days + 1])
    bounds = [10, 10**5, 10**9, 10**10, 10**14, 4 * 10**18]
    secret = rng.choice([-1, 1], x.size) * rng.integers(1, rng.choice(bounds, x.size))

    def fn(x, y):
        return [(x // by, x % by) for by in (*DIVISORS, y)]

    found = spu_runner.run(fn, x, secret, protocol=protocol)
    for (quotient, rest), by in zip(found, (*DIVISORS, secret), strict=True):
        np.testing.assert_array_equal(quotient, x // by, str(by))
        np.testing.assert_array_equal(rest, x % by, str(by))


def test_the_days_of_timestamps_are_right():
    x = np.random.default_rng(0).integers(0, 2 * 10**12, 300).astype(np.float64)
    day = 86_400_000
    found = spu_runner.run(lambda x: (x // day, jnp.floor(x / day), x % day, (x // day + 4) % 7), x)
    exact = x // day, np.floor(x / day), x % day, (x // day + 4) % 7
    for mine, numpy in zip(found, exact, strict=True):
        np.testing.assert_allclose(mine, numpy, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", ATTACKED)
def test_what_an_attack_found_is_right(name):
    fn, *args = ATTACKED[name]
    assert spu_runner.off(spu_runner.run(fn, *args), spu_runner.numpy_of(fn, *args)) < TOLERANCE

"""Integers wrap around as NumPy's do, wherever a number is looked at."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner
from mplang_spu.lowering import PASSES, lower
from mplang_spu.target import Target

import mplang_core as mp

LONG = pytest.mark.long("20 functions on SPU")
NARROW = [
    "int8",
    "int32",
    *(pytest.param(each, marks=LONG) for each in ("uint8", "uint16", "uint32", "int16")),
]
WIDE = ["int64", pytest.param("uint64", marks=LONG)]


def shifted(x, by):
    return jax.lax.shift_right_logical(x, jnp.full_like(x, by))


def end(x, which):
    return x.dtype.type(getattr(np.iinfo(x.dtype), which))


FUNCTIONS = {
    "sum": lambda x, y: x + y > y,
    "difference": lambda x, y: x - y < y,
    "product": lambda x, y: (x * y) >> 2,
    "negative": lambda x, y: -x > y,
    "complement": lambda x, y: (~x).astype(jnp.float32),
    "to the left": lambda x, y: (x << 3) >> 2,
    "to the right": lambda x, y: shifted(x, 2),
    "total": lambda x, y: jnp.sum(x, dtype=x.dtype) // 3,
    "running total": lambda x, y: jnp.maximum(jnp.cumsum(x, dtype=x.dtype), y),
    "dot": lambda x, y: jnp.dot(x, y) % 7,
    "hash": lambda x, y: ((x ^ (x >> 3)) * y) >> 1,
    "wider": lambda x, y: (x + y).astype(jnp.int32) // 2,
    "narrower": lambda x, y: (x.astype(jnp.int32) - 200).astype(jnp.uint8) > y.astype(jnp.uint8),
    "sort": lambda x, y: jnp.sort(x * y),
    "loop": lambda x, y: jax.lax.fori_loop(0, 3, lambda i, c: (c * y + x) >> 1, x),
    "branch": lambda x, y: jax.lax.cond(x[2] > 3, lambda: x * y, lambda: x - y) > 3,
    "distance": lambda x, y: jnp.abs(x - y) > 1,
    "moved product": lambda x, y: jnp.stack([jnp.prod(x, dtype=x.dtype)] * 6)[::-1] > y,
    "chosen product": lambda x, y: jnp.where(x > y, jnp.cumprod(x, dtype=x.dtype), x) // 3,
    "equality": lambda x, y: x + y == y,
    "bits": lambda x, y: jax.lax.population_count(x - y),
    "result": lambda x, y: x * y + x,
    "less one": lambda x, y: (x - 1) > x,
    "of positive ones": lambda x, y: (jnp.maximum(x, 1) - 1) > 3,
    "less one of a sum": lambda x, y: (x + y - 1) > x,
    "less the least": lambda x, y: (x - end(x, "min")) > x,
    "constants": lambda x, y: (x + end(x, "max")) + end(x, "max") > x,
    "constants apart": lambda x, y: (x - 3) + (y - 4) > x,
    "moved constants": lambda x, y: jnp.flip(x - 1)[1:] > y[1:],
    "from a constant": lambda x, y: (1 - x) > y,
}


def extremes(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng, limits = np.random.default_rng(1), np.iinfo(dtype)
    x, y = rng.integers(limits.min, limits.max, (2, 6), dtype, endpoint=True)
    x[:2], y[:3] = (limits.max, limits.min), (3, y[1], limits.max)
    return x, y


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("protocol", "field"),
    [
        ("ABY3", "FM128"),
        pytest.param("ABY3", "FM64", marks=LONG),
        pytest.param("SEMI2K", "FM128", marks=LONG),
        pytest.param("CHEETAH", "FM128", marks=LONG),
    ],
)
def test_narrow_integers_are_those_of_numpy(dtype, protocol, field):
    check_functions(dtype, protocol, field)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize(
    "protocol", ["ABY3", pytest.param("SEMI2K", marks=LONG), pytest.param("CHEETAH", marks=LONG)]
)
def test_so_are_those_of_64_bits(dtype, protocol):
    check_functions(dtype, protocol, "FM128")


def check_functions(dtype, protocol, field):
    def fn(x, y):
        return {name: each(x, y) for name, each in FUNCTIONS.items()}

    args = extremes(dtype)
    found = spu_runner.run(fn, *args, protocol=protocol, field=field)
    wanted = spu_runner.numpy_of(fn, *args)
    for name in FUNCTIONS:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


@pytest.mark.parametrize("op", [jax.lax.add, jax.lax.mul])
@pytest.mark.parametrize("start", [lambda x: jnp.arange(4, dtype=x.dtype), lambda x: x])
def test_long_chains_are_followed_once(op, start):
    """Constants were, along all of their ways, and bounds had thousands of bits."""

    def chain(x):
        last = start(x)
        for _ in range(1200):
            last = op(last, last)
        return (x - last) > 3

    x = np.array([1, 2, 3, 4], np.uint8)
    text = spu_runner.stablehlo(chain, x)
    assert "compare" in lower(text, Target("ABY3", "FM128", 40)).text


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bits_that_are_shifted_in_are_zero(dtype):
    x = np.array([-1, 0, 7, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    for fn in (lambda x: shifted(x, 3), lambda x: shifted(x, 3) > 2, lambda x: shifted(x, 0)):
        np.testing.assert_array_equal(spu_runner.run(fn, x), spu_runner.numpy_of(fn, x))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32"])
def test_a_sort_of_some_bits_is_one_of_numbers(dtype):
    """libspu takes the highest of eight shared bits for a sign."""
    x = np.array([255, 0, 7, 20, 200], dtype)
    for fn in (lambda x: jnp.sort(x & 255), lambda x: jnp.argsort(x & 255)):
        np.testing.assert_array_equal(spu_runner.run(fn, x), spu_runner.numpy_of(fn, x))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.astype(jnp.float32) / 255,
        lambda x: jnp.mean(x),
        lambda x: x.astype(jnp.uint32).sum() > 100,
        lambda x: x.astype(jnp.int16) - 128 > 0,
        lambda x: jnp.sort(x)[::2] > x[0],
        lambda x: (x > 3).astype(jnp.uint8) * jnp.uint8(7) > 3,
    ],
)
def test_what_fits_its_type_costs_nothing(fn):
    """Bounds show it: pixels become floats, counts are added up."""
    text, target = (
        spu_runner.stablehlo(fn, np.arange(8, dtype=np.uint8)),
        Target("ABY3", "FM128", 40),
    )
    passes = [each for each in PASSES if each.__name__ != "wrap_integers"]
    assert lower(text, target).text == lower(text, target, passes).text


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, k: jax.lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x),
        lambda x, k: jax.lax.scan(lambda c, y: (c + y, c * y), 0.0, x, reverse=True),
        lambda x, k: jax.lax.fori_loop(
            0, 4, lambda i, c: c + jax.lax.dynamic_slice(x, (2 * i,), (2,)).sum(), 0.0
        ),
        lambda x, k: jax.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, x)),
        lambda x, k: jax.lax.fori_loop(0, k.shape[0], lambda i, c: c.at[-i].add(1), x),
        lambda x, k: (x[k[0]], x.at[k].add(1.0), jnp.take(x, k), x[jnp.argmax(x)]),
        lambda x, k: (x[jnp.argsort(x)], jnp.argsort(jnp.argsort(x)) > 2, jax.lax.top_k(x, 3)),
        lambda x, k: (jnp.bincount(k, length=5) > 2, jax.ops.segment_sum(x, k, 5)),
        lambda x, k: ((x > 0).sum() // 2, jnp.cumsum(x > 0) > 3, jnp.nonzero(x > 0, size=3)),
        lambda x, k: (jnp.mean(k), k % 7, k // 7, (k >> 3) & 1, jnp.where(k > 3, k, 0) > 2),
        lambda x, k: (jnp.median(x), jnp.roll(x, 3), jnp.histogram(x, bins=5, range=(0, 1))),
    ],
)
def test_indices_counters_and_positions_cost_nothing(fn):
    check_is_left_alone(fn, np.ones(8, np.float32), np.arange(8, dtype=np.int32))


def test_numbers_of_a_narrower_type_do_not_wrap_in_a_wider_one():
    """The remedy where the price of a reduction counts: int16 is shared, and computed as int32."""

    def fn(x, y):
        x, y = x.astype(jnp.int32), y.astype(jnp.int32)
        return x + y > 3, x * y > 3, (x * y).astype(jnp.float32), jnp.sort(x - y), (x + y) >> 1

    check_is_left_alone(fn, *np.ones((2, 4), np.int16))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jax.lax.fori_loop(0, 70, lambda i, c: (c[0] + 2, c[1] + c[0] // 2), (x * 0, x))[
            1
        ],
        lambda x: jax.lax.fori_loop(0, 5, lambda i, c: (c + 100) // 2, x),
        lambda x: jnp.where(x < 0, x + jnp.int8(100), x - jnp.int8(100)) // 2,
        lambda x: jnp.where(x < 50, x + jnp.int8(100), x) // 2,
    ],
)
def test_what_leaves_its_type_in_a_loop_or_branch_wraps(fn):
    x = np.array([1, 3, 100, 126], np.int8)
    np.testing.assert_array_equal(spu_runner.run(fn, x), spu_runner.numpy_of(fn, x))


def check_is_left_alone(fn, *args):
    text, target = spu_runner.stablehlo(fn, *args), Target("CHEETAH", "FM128", 40)
    passes = [each for each in PASSES if each.__name__ != "wrap_integers"]
    assert lower(text, target).text == lower(text, target, passes).text


@pytest.fixture(scope="module")
def three():
    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim, mp.with_ctx(sim):
        yield sim


def overflowing(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    return np.array([np.iinfo(dtype).max, 5], dtype), np.array([1, 1], dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_a_sum_of_one_function_wraps_in_the_next(three, dtype):
    def program(x, y):
        on = mp.device("SP0")
        total = on(lambda x, y: x + y)(x, y)
        return mp.reveal(on(lambda s, x: (s > x, s // 2, s))(total, x), to="P0")

    x, y = overflowing(dtype)
    found = mp.fetch(three, mp.evaluate(three, program, mp.put("P0", x), mp.put("P1", y)))
    for mine, numpys in zip(found, (x + y > x, (x + y) // 2, x + y), strict=True):
        np.testing.assert_array_equal(mine, numpys)


def test_a_sum_wraps_in_the_next_turn_of_a_loop(three):
    def program(x):
        on = mp.device("SP0")
        step = on(lambda s: jnp.where(s > 0, s + s, s))
        state = mp.while_loop(
            lambda s: s[0] < 4, lambda s: (s[0] + 1, step(s[1])), (0, mp.seal(x, to="SP0"))
        )
        return mp.reveal(state[1], to="P0")

    x, wanted = np.array([100, 3, -5], np.int8), np.array([-56, 48, -5], np.int8)
    found = mp.fetch(three, mp.evaluate(three, program, mp.put("P0", x)))
    np.testing.assert_array_equal(found, wanted)


def test_a_sum_that_is_revealed_costs_nothing():
    def fn(x, y):
        return x + y, x * y, x.sum()

    check_is_left_alone(fn, *np.ones((2, 4), np.int32))
    made = lower(spu_runner.stablehlo(fn, *np.ones((2, 4), np.int32)), Target("ABY3", "FM128", 40))
    assert made.unreduced == {0, 1, 2}

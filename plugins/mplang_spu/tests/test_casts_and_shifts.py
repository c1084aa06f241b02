"""Casts of floats beyond an integer type, and shifts by any amount, are XLA's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner
from jax import lax
from mplang_spu.lowering import lower
from mplang_spu.target import Target

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = [-0.5, -1, -1.5, -300.7, 300.7, 127.9, 255.5, 2.0**31, -(2.0**31), 2.0**33, -(2.0**33)]
LARGE = [1e20, -1e20, -(2.0**63), 2.0**63, 2.0**64, -(2.0**64)]

CASTS = {
    "cast": (lambda x: x, [*FLOATS, *LARGE]),
    "of a rounded number": (lambda x: jnp.round(x), [*FLOATS, *LARGE]),
    "of a quotient": (lambda x: x / (jnp.abs(x) * 0 + 2), FLOATS),
}


def check(fn, *args, **options):
    found, exact = spu_runner.run(fn, *args, **options), spu_runner.numpy_of(fn, *args)
    for mine, right in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True):
        assert mine.dtype == right.dtype
        np.testing.assert_array_equal(mine, right, err_msg=right.dtype.name)


@pytest.mark.parametrize("name", CASTS)
def test_a_float_beyond_an_integer_type_becomes_its_limit(name):
    """-1 as uint8 was 255, and 2^33 as int32 0."""
    of, numbers = CASTS[name]
    check(lambda x: [of(x).astype(dtype) for dtype in INTEGERS], np.float64(numbers))


CHEETAH = pytest.param("CHEETAH", marks=pytest.mark.long("programs on CHEETAH"))


@pytest.mark.parametrize("field", ["FM64", "FM128"])
@pytest.mark.parametrize("protocol", [CHEETAH, "SEMI2K"])
def test_so_it_is_on_every_protocol(protocol, field):
    check(lambda x: x.astype("int32"), np.float32(FLOATS), protocol=protocol, field=field)
    check(lambda x: x.astype("uint8"), np.float32(FLOATS), protocol=protocol, field=field)


SHIFTS = [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
NUMBERS = [-5, 7, 100, 1, -128, -5, 7, 100, 1, -3]
AMOUNTS = [-1, 0, 8, 1, 32, 64, 200, 31, -9, 3]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_shift_by_a_negative_or_too_large_amount_gives_zeros_or_signs(dtype):
    """libspu takes the amount modulo the size of its ring, and JAX's own lowering fails for
    arithmetic shifts of unsigned integers.
    """
    x, by = np.array(NUMBERS).astype(dtype), np.array(AMOUNTS).astype(dtype)
    check(lambda x, by: [shift(x, by) for shift in SHIFTS], x, by)
    check(lambda x: [shift(x, by) for shift in SHIFTS], x)  # public amounts


@pytest.mark.parametrize("protocol", [CHEETAH, "SEMI2K"])
def test_so_are_shifts_on_every_protocol(protocol):
    x, by = np.int32(NUMBERS), np.int32(AMOUNTS)
    check(lambda x, by: [shift(x, by) for shift in SHIFTS], x, by, protocol=protocol)
    check(lambda x: x.astype("uint8") >> 3 << 9, x, protocol=protocol)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_leading_zeros_are_counted(dtype):
    x = np.array(NUMBERS).astype(dtype)
    check(lambda x: [lax.clz(x), lax.clz(x >> 1), lax.clz(x * 0)], x)


@pytest.mark.parametrize("protocol", ["ABY3", CHEETAH, "SEMI2K"])
def test_so_they_are_on_every_protocol_and_so_are_cube_roots(protocol):
    check(lax.clz, np.int32(NUMBERS), protocol=protocol)
    x = np.float32([1, -2, 8, 3, 0.5, 0, -0.0, 1e5, -1e-6])
    found = spu_runner.run(jnp.cbrt, x, protocol=protocol)
    np.testing.assert_allclose(found, np.cbrt(x), rtol=1e-3, atol=1e-4)


def test_a_constant_amount_costs_no_comparison():
    text = spu_runner.stablehlo(lambda x: (x << 3) >> 1, np.int32([1]))
    assert "compare" not in lower(text, Target("ABY3", "FM128", 40)).text


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_a_quotient_and_a_remainder_of_integers_by_0_are_those_of_xla(dtype):
    """libspu's were arbitrary."""
    x, y = np.array(NUMBERS).astype(dtype), np.array([0, 2, 0, 0, 3, 0, 0, 1, 0, 7]).astype(dtype)
    check(lambda x, y: [lax.div(x, y), lax.rem(x, y), x // y, x % y], x, y)

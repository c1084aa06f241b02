"""Shifts and slices of numbers of which libspu knows that they have few bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import spu_runner

FEW_BITS = {
    "masked": lambda x: (x & 3) >> 1,
    "compared": lambda x: (x > 1).astype(x.dtype) >> 1,
    "bools": lambda x: (x > 1) >> (x > 2),
    "shifted by a secret": lambda x: (x & 7) >> (x & 1),
    "negative": lambda x: ((x | -4) >> 1, -(x & 3) >> 1),
    "chosen": lambda x: jnp.where(x > 1, x & 3, 1) >> 1,
}


@pytest.mark.parametrize(
    ("dtype", "protocol"),
    [("int8", "ABY3"), ("int32", "ABY3"), ("int64", "ABY3"), ("int32", "SEMI2K")],
)
def test_a_shift_of_few_bits_is_that_of_numpy(dtype, protocol):
    """On ABY3 it failed at the parties."""
    fn, x = each_of(FEW_BITS), np.array([1, 5, -7, 12, 0, 127, -128], dtype)
    check(spu_runner.run(fn, x, protocol=protocol), spu_runner.numpy_of(fn, x))


def each_of(functions):
    return lambda *args: {name: fn(*args) for name, fn in functions.items()}


def check(found, exact):
    assert {name: spu_runner.off(found[name], exact[name]) for name in exact} == dict.fromkeys(
        exact, 0
    )


SLICES = {
    "element": lambda x, i: (x & 3)[i],
    "slice": lambda x, i: jax.lax.dynamic_slice(x & 3, (i,), (2,)),
    "of a comparison": lambda x, i: (x > 1).astype(x.dtype)[i],
    "of bools": lambda x, i: (x > 1)[i],
    "of all bits": lambda x, i: x[i],
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
def test_a_slice_of_few_bits_at_a_secret_place_is_that_of_numpy(dtype):
    """On ABY3 it failed at the parties."""
    x, fn = np.array([1, 5, 7, 12, 0, np.iinfo(dtype).max], dtype), each_of(SLICES)
    for place in (0, 3, 5):
        args = x, np.int32(place)
        check(spu_runner.run(fn, *args), spu_runner.numpy_of(fn, *args))

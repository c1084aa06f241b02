"""Random programs of integers that are said to be right in FM64 are."""

from __future__ import annotations

import numpy as np
import pytest
import spu_runner
from integer_programs import IN_FM64, check_as_jax, program
from mplang_analysis import UNKNOWN, Interval
from mplang_spu import exact_integers
from mplang_spu.lowering import Target

from mplang_core.ext import pack

SIZES = (8, 20, 40, 60, 62)  # bits of 64-bit operands


def within(x: np.ndarray, size: int) -> tuple[np.ndarray, Interval]:
    """Return an operand whose integers of 64 bits are of a size, and their declared interval."""
    if x.dtype.itemsize < 8:
        return x, UNKNOWN
    low, high = -(2**size) * (x.dtype.kind == "i"), 2**size - 1
    return np.clip(x, low, high).astype(x.dtype), Interval(low, high)


def is_right(seed: int, protocol: str) -> bool:
    """Compare a program with JAX, if it is said to be right in FM64; return whether it is."""
    fn, args = program(seed, IN_FM64)
    size = SIZES[seed % len(SIZES)]
    args, bounds = zip(*(within(x, size) for x in args), strict=True)
    code = pack(spu_runner.stablehlo(fn, *args, target=Target(protocol, "FM64", 18)))
    assert exact_integers.inexact_op(code) is None
    if exact_integers.bounds(code, bounds)[1]:
        return False
    check_as_jax(fn, args, spu_runner.run(fn, *args, protocol=protocol, field="FM64"))
    return True


def test_programs_that_are_said_to_be_right_in_fm64_are():
    assert sum(is_right(seed, "ABY3") for seed in range(10)) > 5


@pytest.mark.long("hundreds of random programs")
@pytest.mark.parametrize(("protocol", "count"), [("ABY3", 500), ("SEMI2K", 150), ("CHEETAH", 60)])
def test_so_are_hundreds(protocol, count):
    assert sum(is_right(seed, protocol) for seed in range(10, 10 + count)) > count / 2

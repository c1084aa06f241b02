"""``%`` and ``//`` between values and numbers are Python's, at a party and on shares."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PrecisionWarning


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        yield sim


def at(sim, device, op, x, y):
    """Return what an operator gives on a device."""

    def program(x):
        return mp.reveal(op(mp.seal(mp.put("P0", x)), y), to="P0")

    here = (lambda x: op(mp.put("P0", x), y)) if device == "P0" else program
    return mp.fetch(sim, mp.evaluate(sim, here, x))


CASES = [(op, divisor) for op in (operator.mod, operator.floordiv) for divisor in (3, -3)]


@pytest.mark.parametrize("device", ["P0", "SP0"])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.float64, np.float32])
def test_negative_numbers_are_divided_as_in_python(sim, device, kind):
    def program(x):
        placed = mp.put("P0", x) if device == "P0" else mp.seal(mp.put("P0", x))
        made = [op(placed, divisor) for op, divisor in CASES]
        return made if device == "P0" else [mp.reveal(each, to="P0") for each in made]

    x = kind([-7, 7, -8, 8, 5, -5, 0, 1])
    for (op, divisor), found in zip(
        CASES, mp.fetch(sim, mp.evaluate(sim, program, x)), strict=True
    ):
        assert found.tolist() == [op(each, divisor) for each in x.tolist()], (op, divisor)
        assert found.dtype == op(x, divisor).dtype


@pytest.mark.parametrize(("op", "expected"), [(operator.mod, 0.5 % 0.1), (operator.floordiv, 4)])
def test_a_divisor_that_is_no_binary_fraction(sim, op, expected):
    assert at(sim, "P0", op, 0.5, 0.1) == expected
    with pytest.warns(PrecisionWarning, match="remainder .* instead of") as told:
        at(sim, "SP0", op, 0.5, 0.1)  # 0.1 is 0.100000000000364 in 40 fraction bits
    assert told[0].filename == __file__

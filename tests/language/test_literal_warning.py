"""A large literal that a program moves is warned of: all parties of the program can read it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import LiteralWarning

LIMIT = 64
DATA = np.arange(LIMIT + 1)


def trace(fn, *args):
    return mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(2)).trace(None, *args)


def shown(fn, *args):
    """Return the lines whose warning is shown."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trace(fn, *args)
    assert {each.category for each in found} <= {LiteralWarning}
    assert {each.filename for each in found} <= {__file__}
    return [each.lineno for each in found]


def line(fn):
    """Return the line after the one on which a function begins."""
    return fn.__code__.co_firstlineno + 1


def test_a_large_literal_is_warned_of_once_per_line():
    def program():
        for _ in range(3):
            x = mp.put("P0", DATA)
        return x, mp.put("P1", DATA.tolist()), mp.put("P1", {"a": DATA, "b": DATA})

    assert shown(program) == [line(program) + 1, line(program) + 2]
    assert shown(program) == []  # as it was before


def test_the_text_says_what_works():
    with pytest.warns(LiteralWarning, match="all parties of the program can read it") as found:
        trace(lambda: mp.put("P0", DATA, range=(0, 100)))
    assert len(found) == 1
    for way in ("outside of the function", "mp.with_ctx(host)", "an argument", "a data set"):
        assert way in str(found[0].message)


def test_the_bound():
    assert shown(lambda: mp.put("P0", DATA[:LIMIT])) == []
    assert shown(lambda: (mp.put("P0", 7), mp.put("P0", [1.5, 2.5]))) == []
    assert len(shown(lambda: mp.put("P0", DATA.reshape(5, 13)))) == 1


def test_values_and_arguments_are_not_warned_of():
    def program(x):
        return mp.put("P1", mp.put("P0", x))

    assert shown(program, DATA) == []
    assert shown(program, mp.MPType(mp.TensorType("i64", (1_000,)), mp.Mask.of(0))) == []


def test_data_put_outside_of_a_program_is_not_warned_of(simulate):
    sim = simulate(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mp.with_ctx(sim):
            x = mp.put("P0", DATA)
        moved = mp.evaluate(sim, lambda x: mp.put("P1", x), x)
    np.testing.assert_array_equal(mp.fetch(sim, moved), DATA)


def test_inner_functions_are_warned_of_too():
    @mp.builtin_function
    def inner():
        return mp.put("P0", DATA)

    assert shown(lambda: inner()) == [line(inner.__wrapped__) + 1]


@pytest.mark.needs("spu")
def test_what_is_sealed_is_warned_of():
    assert len(shown(lambda: mp.seal(DATA))) == 1
    assert len(shown(lambda: mp.seal(mp.put("P0", DATA)))) == 1  # for put, not twice


def test_a_filter_may_make_it_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", LiteralWarning)
        for _ in range(2):  # each time
            with pytest.raises(LiteralWarning):
                trace(lambda: mp.put("P0", DATA))

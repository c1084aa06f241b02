"""Errors while JAX traces: the user's line, no line of ours, and an advice that works."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.ext import TraceError

pytestmark = pytest.mark.needs("jax")

X = np.float32([3, 1, 2])


def leaked_by(kept, how="called"):
    """Put a value, and let another one leak out of a function of it."""
    x = mp.put("P0", X)
    mp.device("P0")(lambda x, _=how: kept.append(x * 2) or x)(x)  # run once per function
    return x


LEAKS = {
    "argument": lambda x, kept: mp.device("P0")(lambda x: x + 1)(kept[0]),
    "captured": lambda x, kept: mp.device("P0")(lambda x: x + kept[-1])(x),
    "put": lambda x, kept: mp.put("P1", kept[0]),
    "constant": lambda x, kept: mp.constant(kept[0]),
    "returned": lambda x, kept: kept[0],
}


@pytest.mark.parametrize("how", LEAKS)
def test_a_leaked_value_is_told_as_one(how):
    kept = []
    with (
        mp.Simulator(mp.ClusterSpec.simple(2)) as sim,
        pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+: .*leaked out") as error,
    ):
        mp.evaluate(sim, lambda: LEAKS[how](leaked_by(kept, how), kept))
    text = str(error.value)
    assert not re.search("site-packages|plugins/|_flat|np inside", text), text


def test_the_advice_for_a_leaked_value_works():
    def program():
        x = mp.put("P0", X)
        x, twice = mp.device("P0")(lambda x: (x, x * 2))(x)  # returned, not kept
        return mp.device("P0")(lambda x, twice: x + twice)(x, twice)

    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        np.testing.assert_array_equal(mp.fetch(sim, mp.evaluate(sim, program)), X * 3)


def test_errors_of_jax_name_the_users_function():
    kept = []
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim, pytest.raises(Exception) as error:  # noqa: PT011
        mp.evaluate(sim, lambda: leaked_by(kept) and kept[0] + 1)
    assert "_flat" not in str(error.value)


def at_p0(fn):
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        return mp.fetch(sim, mp.evaluate(sim, lambda: mp.device("P0")(fn)(mp.put("P0", X))))


def test_what_a_library_refuses_has_the_users_line():
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0, 3.0])
    with pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+: .*pandas.*\.to_numpy\(\)"):
        at_p0(lambda x: x + series)
    weights = series.to_numpy()
    np.testing.assert_array_equal(at_p0(lambda x: x + weights), X + np.float32([1, 2, 3]))


def test_strings_in_a_captured_array_have_an_advice_that_works():
    names = np.array(["b", "a", "b"])
    with pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+: .*np\.unique\(names"):
        at_p0(lambda x: x + names)
    numbers = np.unique(names, return_inverse=True)[1]
    np.testing.assert_array_equal(at_p0(lambda x: x + numbers), X + np.float32([1, 0, 1]))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_an_integer_of_more_than_64_bits_has_an_advice_that_works(number):
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        with pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+: .*float\(2\*\*64\)") as e:
            mp.evaluate(sim, lambda: mp.put("P0", number))
        assert "strings" not in str(e.value)
        found = mp.fetch(sim, mp.evaluate(sim, lambda: mp.put("P0", float(number))))
    assert found == float(number)
    with pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+: .*float\(\.\.\.\)"):
        at_p0(lambda x: x.astype("int32") + number)
    np.testing.assert_allclose(at_p0(lambda x: x + float(number)), X + float(number))


@pytest.mark.parametrize(
    "call",
    [
        lambda v: float(v),
        lambda v: int(v),
        lambda v: bool(v),
        lambda v: np.asarray(v),
        lambda v: round(v),
        lambda v: mp.compile(lambda x: 1 / 0 if x is None else float(x)).trace(v.ctx, v),
    ],
)
def test_a_traceback_of_a_value_has_the_users_lines_alone(call):
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        with mp.with_ctx(sim):
            v = mp.put("P0", X)
        with pytest.raises(TraceError, match=r"test_trace_errors\.py:\d+") as error:
            call(v)
    frames = traceback.extract_tb(error.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}


def test_a_value_as_an_array_has_an_advice_that_runs():
    with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", X)
        with pytest.raises(TraceError) as error:
            np.asarray(x)
        advice = re.search(r"write (mp\.device\(.*?\)\(lambda.*?\)\(x\))", str(error.value))
        found = mp.evaluate(sim, lambda x: eval(advice[1], {"mp": mp, "x": x}), x)
        np.testing.assert_array_equal(mp.fetch(sim, found), X + 1)

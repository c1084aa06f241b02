"""Ranges of a program's numbers: inputs, moves, branches, loops, engines."""

from __future__ import annotations

import json

import numpy as np
import pytest
import toy
from mplang_analysis import Interval

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import PrecisionWarning, TraceError

SCALAR = mp.TensorType("i64")
VECTOR = mp.TensorType("f32", (3,))
X = np.array([1.0, 2.0, 5.0], np.float32)


def at(base, *ranks: int) -> mp.MPType:
    return mp.MPType(base, mp.Mask.of(ranks))


def compiled(fn, *types, cluster=None):
    return mp.compile(fn, *types, cluster_spec=cluster or mp.ClusterSpec.simple(2))


def result(found: analysis.Ranges) -> Interval:
    (row,) = [row for row in found.rows if row.what == "result"]
    return row.interval


def moved(x):
    return mp.put("P1", mp.put("P0", x))


# -- inputs


@pytest.mark.parametrize("key", ["x", 0])
def test_a_declared_range_goes_through_moves(key):
    found = analysis.ranges(compiled(moved, at(VECTOR, 0)), {key: (0, 7)})
    assert [(row.what, row.interval, row.basis) for row in found.rows] == [
        ("input x", Interval(0, 7), "declared"),
        ("result", Interval(0, 7), "declared"),
    ]


def test_parts_of_a_parameter_have_names():
    program = compiled(
        lambda model: mp.put("P1", model["w"]), {"b": at(VECTOR, 0), "w": at(VECTOR, 0)}
    )
    assert result(analysis.ranges(program, {"model.w": (0, 7)})) == Interval(0, 7)
    assert result(analysis.ranges(program, {"model": (0, 7)})) == Interval(0, 7)
    assert not result(analysis.ranges(program, {"model.b": (0, 7)})).known


def test_a_sample_gives_observed_ranges_with_a_margin_that_keeps_the_sign():
    program = compiled(moved, at(VECTOR, 0))
    for sample in ((X,), {"x": X}):
        (given, row) = analysis.ranges(program, sample=sample).rows
        assert (row.interval.low, row.interval.high) == pytest.approx((0.6, 5.4))
        assert given.basis == row.basis == "observed"
    low = analysis.ranges(program, sample=(X - 1,)).rows[0].interval.low
    assert low == 0
    assert "sample" in str(analysis.ranges(program, sample=(X,)))


def test_a_declared_range_goes_before_a_sample():
    found = analysis.ranges(compiled(moved, at(VECTOR, 0)), {"x": (0, 7)}, sample=(X,))
    assert found.rows[0].basis == "declared"


def test_types_and_literals_tell_their_ranges():
    flags, bytes_ = at(mp.TensorType("bool"), 0), at(mp.TensorType("u8"), 0)
    found = analysis.ranges(compiled(lambda a, b, c: (a, b, c), flags, bytes_, at(SCALAR, 0)))
    assert [row.interval for row in found.rows[:2]] == [Interval(0, 1), Interval(0, 255)]
    assert not found.rows[2].interval.known
    literal = compiled(lambda x: mp.put("P1", mp.constant(X)), at(SCALAR, 0))
    assert result(analysis.ranges(literal)) == Interval(1, 5)


@pytest.mark.parametrize(
    ("declared", "sample", "reason"),
    [
        ({"y": (0, 1)}, None, "no parameter 'y'; it has: x"),
        ({1: (0, 1)}, None, "no parameter 1"),
        ({"x": (1, 0)}, None, "low not above high"),
        ({"x": 3}, None, "two real numbers"),
        ({"x": (0, float("nan"))}, None, "two real numbers"),
        ({"x": ("a", "b")}, None, "two real numbers"),
        ({}, (np.array(["a"]),), "real numbers"),
        ({}, {"y": X}, "no parameter 'y'"),
        ({}, X, "a tuple of arguments"),
    ],
)
def test_what_is_no_range_is_refused(declared, sample, reason):
    with pytest.raises(TraceError, match=reason):
        analysis.ranges(compiled(moved, at(VECTOR, 0)), declared, sample=sample)


# -- programs


def test_an_op_without_a_rule_gives_what_is_not_known():
    program = compiled(lambda x: mp.invoke(toy.add, x, x), at(SCALAR, 0))
    found = analysis.ranges(program, {"x": (0, 1)})
    assert [str(row.interval) for row in found.rows] == ["[0, 1]", "not known", "not known"]


def test_conv_and_branches_join():
    def program(x, y, flag):
        both = mp.pconv([x, y])
        return mp.uniform_cond(
            flag, lambda: both, lambda: mp.pconv([x, mp.put("P1", mp.put("P0", x))])
        )

    everyone = at(mp.TensorType("bool"), 0, 1)
    traced = compiled(program, at(SCALAR, 0), at(SCALAR, 1), everyone)
    assert result(analysis.ranges(traced, {"x": (0, 3), "y": (5, 6)})) == Interval(0, 6)
    assert result(analysis.ranges(traced, {"x": (0, 3), "y": (5, 6), "flag": (0, 0)})) == Interval(
        0, 3
    )


def test_functions_are_gone_through():
    inner = mp.function(lambda x: mp.put("P1", mp.put("P0", x)))
    traced = compiled(lambda x: inner(x), at(VECTOR, 0))
    assert result(analysis.ranges(traced, {"x": (0, 3)})) == Interval(0, 3)


@pytest.mark.needs("jax")
def test_a_counter_loop_is_run_and_an_open_one_is_not_known():
    def loop(n):
        def turn(state):
            i, total = state
            return i + 1, total + i

        return mp.while_loop(lambda state: state[0] < n, turn, (0, 0))[1]

    traced = compiled(loop, at(SCALAR, 0, 1))
    assert result(analysis.ranges(traced, {"n": (5, 5)})) == Interval(10, 10)
    assert not result(analysis.ranges(traced)).known


# -- declared in the program


def test_what_put_declares_is_used():
    traced = compiled(lambda x: mp.put("P1", mp.put("P0", x, range=(0, 9))), at(VECTOR, 0))
    assert result(analysis.ranges(traced)) == Interval(0, 9)
    assert result(analysis.ranges(traced, {"x": (2, 99)})) == Interval(2, 9)
    assert result(analysis.ranges(traced, {"x": (20, 99)})) == Interval(0, 9)  # it fails there


# -- SPU


def spu(field: str, fraction: int, members: int = 3) -> mp.ClusterSpec:
    base = mp.ClusterSpec.simple(members)
    config = {"field": field, "fxp_fraction_bits": fraction}
    device = {"kind": "SPU", "members": list(range(members)), "config": config}
    return mp.ClusterSpec(base.nodes, {**base.devices, "SP0": device})


FM128, FM64 = ("FM128", 40), ("FM64", 18)


def secret(fn, declared, *types, field):
    def program(*args):
        return mp.reveal(mp.device("SP0")(fn)(*map(mp.seal, args)))

    places = [at(kind, i) for i, kind in enumerate(types)]
    return analysis.ranges(compiled(program, *places, cluster=spu(*field)), declared)


def alerts(found: analysis.Ranges) -> set[tuple[str, str]]:
    return {(row.what, row.status) for row in found.alerts}


@pytest.mark.needs("jax", "spu")
def test_salaries_fit_in_the_large_field_only():
    salaries = mp.TensorType("f32", (13_810,))
    wide, narrow = (
        secret(lambda x: x.std(), {0: (0, 400_000)}, salaries, field=field)
        for field in (FM128, FM64)
    )
    assert not wide.alerts
    assert result(wide).high == pytest.approx(400_000, rel=0.01)
    assert ("spu.run_jax: multiply", "overflows") in alerts(narrow)  # the squares
    assert ("spu.run_jax: reduce", "overflows") in alerts(narrow)  # their sum
    assert "as if it had not happened" in str(narrow)


@pytest.mark.needs("jax", "spu")
@pytest.mark.parametrize("written", ["sigmoid", "by hand"])
def test_logistic_regression_fits(written):
    import jax
    import jax.numpy as jnp

    sigmoid = jax.nn.sigmoid if written == "sigmoid" else lambda z: 1 / (1 + jnp.exp(-z))

    def train(x, y):
        def step(i, w):
            return w - 0.1 * x.T @ (sigmoid(x @ w) - y) / len(y)

        return jax.lax.fori_loop(0, 20, step, jnp.zeros(4, jnp.float32))

    types = mp.TensorType("f32", (512, 4)), mp.TensorType("f32", (512,))
    found = secret(train, {0: (-3, 3), 1: (0, 1)}, *types, field=FM128)
    assert not found.alerts
    assert 5.9 < result(found).high < 6.1


@pytest.mark.needs("jax", "spu")
def test_a_divisor_that_may_be_0_is_not_known():
    kinds = (VECTOR, VECTOR)
    found = secret(lambda x, y: x / y, {0: (-1, 1), 1: (-1, 1)}, *kinds, field=FM128)
    assert alerts(found) == {("spu.run_jax: divide", "not known"), ("spu.run_jax", "not known")}
    found = secret(lambda x, y: x / y, {0: (-1, 1), 1: (1, 9)}, *kinds, field=FM128)
    assert not found.alerts


@pytest.mark.needs("jax", "spu")
def test_the_start_of_a_maximum_of_int64_does_not_fit():
    numbers = mp.TensorType("i64", (9,))
    wide, narrow = (
        secret(lambda x: x.max(), {0: (0, 1000)}, numbers, field=field) for field in (FM128, FM64)
    )
    assert not wide.alerts
    assert alerts(narrow) == {("spu.run_jax: constant", "overflows")}
    assert result(narrow) == Interval(0, 1000)


@pytest.mark.needs("jax", "spu")
def test_small_numbers_vanish():
    with pytest.warns(PrecisionWarning, match="the constant 1e-07"):
        found = secret(lambda x: x * 1e-7, {0: (0, 1)}, VECTOR, field=FM64)
    assert ("spu.run_jax: constant", "vanishes") in alerts(found)
    found = secret(lambda x: x + 1, {0: (0, 1e-7)}, VECTOR, field=FM64)
    assert ("spu.make_shares", "vanishes") in alerts(found)


# -- how it looks


@pytest.mark.needs("jax", "spu")
def test_it_shows_itself_as_its_siblings_do():
    found = secret(lambda x: x * x, {0: (0, 1e9)}, VECTOR, field=FM64)
    shown, page = str(found), found.to_html()
    assert "test_ranges.py:" in shown
    assert "overflows" in shown
    assert 'class="alert"' in page
    rows = json.loads(found.to_json())["rows"]
    assert rows[0] == {
        "what": "input args.0",
        "line": "",
        "low": 0,
        "high": 1e9,
        "largest": 1e9,
        "smallest": 0.0,
        "basis": "declared",
        "status": "",
    }
    assert found.__rich__() is not None
    unknown = secret(lambda x: x * x, {}, VECTOR, field=FM64)
    assert json.loads(unknown.to_json())["rows"][0]["low"] is None

"""Range analysis: SPU's results lie within the intervals, if its field holds the numbers."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from functions import functions
from hypothesis import HealthCheck, assume, given, settings
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import MPLangError, PrecisionWarning

FRACTION = 18


@pytest.fixture(scope="module")
def two():
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=DEADLINE) as sim:
        yield sim


def secret(function):
    def program(*args):
        return mp.reveal(mp.device("SP0")(function.fn)(*map(mp.seal, args)), to="P0")

    return program


def compiled(function, cluster):
    kinds = [mp.TensorType.of(value) for value in function.args]
    args = [mp.MPType(kind, mp.Mask.of(i % 2)) for i, kind in enumerate(kinds)]
    try:
        return mp.compile(secret(function), *args, cluster_spec=cluster)
    except MPLangError:  # SPU has no such op
        return None


SOME = settings(
    max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@SOME
@given(functions(lines=6))
def test_results_are_within_their_intervals(two, function):
    check(two, function)


@pytest.mark.slow("100 random functions on SPU")
@pytest.mark.timeout(600)
@settings(SOME, max_examples=100)
@given(functions(lines=6))
def test_so_it_is_for_many(two, function):
    check(two, function)


def check(two, function):
    traced = compiled(function, two.cluster_spec)
    assume(traced is not None)
    ranges = dict(enumerate(function.ranges.values()))
    found = analysis.ranges(traced, ranges)
    assume(not found.alerts)
    with warnings.catch_warnings():  # an inexact result lies in its interval as well
        warnings.simplefilter("ignore", PrecisionWarning)
        results = mp.fetch(two, mp.evaluate(two, secret(function), *function.args))
    rows = [row for row in found.rows if row.what.startswith("result")]
    for row, value in zip(rows, jax.tree.leaves(results), strict=True):
        steps = 8 * 2.0**-FRACTION + 1e-6 * row.interval.largest  # float32 on the way out
        assert np.min(value) >= row.interval.low - steps
        assert np.max(value) <= row.interval.high + steps


@pytest.mark.parametrize(
    "product",
    [
        jnp.prod,
        jnp.cumprod,
        jnp.nanprod,
        lambda x: jax.lax.reduce_window(x, 1.0, jax.lax.mul, (3,), (1,), "SAME"),
    ],
)
def test_a_product_of_many_numbers_that_the_field_does_not_hold_is_told(two, product):
    kind = mp.MPType(mp.TensorType("f32", (4,)), mp.Mask.of(0))
    traced = mp.compile(
        lambda x: mp.reveal(mp.device("SP0")(product)(mp.seal(x)), to="P0"),
        kind,
        cluster_spec=two.cluster_spec,
    )
    assert {row.status for row in analysis.ranges(traced, {0: (0, 100_000)}).alerts} == {
        "overflows"
    }
    assert not analysis.ranges(traced, {0: (0, 10)}).alerts


def test_a_function_with_a_public_part_is_followed(two):
    """Nothing was known of a function with a random draw by a public key."""

    def noisy(x, key):
        draw = mp.device("SP0")(lambda x, k: x + jax.random.randint(k, (4,), 0, 5) * 1.0)
        return mp.reveal(draw(mp.seal(x, range=(0, 10)), mp.reveal(key)), to="P0")

    kinds = mp.TensorType("f32", (4,)), mp.TensorType("u32", (2,))
    args = [mp.MPType(kind, mp.Mask.of(0)) for kind in kinds]
    traced = mp.compile(noisy, *args, cluster_spec=two.cluster_spec)
    (result,) = [row for row in analysis.ranges(traced).rows if row.what.startswith("result")]
    assert (result.interval.low, result.status) == (0, "")
    assert result.interval.high < 16

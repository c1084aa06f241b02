"""What SPU will not hold of literals and declared ranges is told before a run, on every backend."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_analysis import precision_losses
from mplang_simulator import Simulator

import mplang_core as mp
from mplang_core.ext import PrecisionError, PrecisionWarning

THREE = mp.ClusterSpec.simple(3)
FM64 = {"kind": "SPU", "members": [0, 1, 2], "config": {"field": "FM64"}}
NARROW = mp.ClusterSpec(THREE.nodes, {**THREE.devices, "SP0": FM64})
F32 = mp.MPType(mp.TensorType("f32", (5,)), mp.Mask.of(0))
I32 = mp.MPType(mp.TensorType("i32", (5,)), mp.Mask.of(0))


def program_of(fn, ends, kind=F32, cluster=THREE):
    def program(x):
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(x, range=ends)), to="P0")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mp.compile(program, kind, cluster_spec=cluster)


def losses(fn, ends, kind=F32, cluster=THREE):
    return precision_losses(program_of(fn, ends, kind, cluster).program)


@pytest.mark.parametrize(
    ("fn", "ends", "kind", "cluster", "text"),
    [
        (lambda x: x.std(), (0, 400_000), F32, NARROW, "multiply reaches 5.*FM64 with 18"),
        (lambda x: x**5, (0, 1e5), F32, THREE, "reaches 1e\\+20.*FM128 with 40"),
        (jnp.log, (-1, 1), F32, THREE, "log gives NaN"),
        (lambda x: 1 / x, (0, 1), F32, THREE, "divide gives infinity"),
        (lambda x: x.sum(), (0, 2**30), I32, THREE, "sum reaches .* i32 does not hold"),
        (lambda x: x * np.float32([3e-14] * 5), (0, 1), F32, THREE, "up to 3e-14 vanish"),
        (lambda x: x, (0, 1e-14), F32, THREE, "up to 1e-14 vanish"),
        (lambda x: x, (0, 1e30), F32, THREE, "up to 1e\\+30 do not fit"),
    ],
)
def test_what_declared_ranges_and_literals_tell(fn, ends, kind, cluster, text):
    found = losses(fn, ends, kind, cluster)
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(" ".join(each.text for each in found))
    assert all(str(each.line).startswith("test_precision_losses.py:") for each in found)


@pytest.mark.parametrize(
    ("fn", "ends", "kind", "cluster"),
    [
        (lambda x: x.std(), (0, 400_000), F32, THREE),
        (lambda x: (x - x.mean()) / x.std(), (0, 400_000), F32, THREE),
        (lambda x: x / (x.max() - x.min() + 1e-9), (0, 400_000), F32, THREE),
        (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), (-1, 1), F32, THREE),
        (lambda x: x.astype("int64").sum(), (0, 2**30), I32, THREE),
        (lambda x: x * 0.1 + 1 / 3, (-5, 5), F32, THREE),
        (lambda x: 1 / (1 + jnp.exp(-x)), (-50, 50), F32, THREE),
        (jnp.sort, (0, 1), F32, NARROW),
    ],
)
def test_ordinary_programs_raise_no_alarm(fn, ends, kind, cluster):
    assert losses(fn, ends, kind, cluster) == []


def test_a_training_loop_whose_intervals_grow_raises_no_alarm():
    def program(x):
        x = mp.seal(x, range=(-3, 3))
        w = mp.device("SP0")(lambda x: x[0] * 0)(x)
        for _ in range(30):
            w = mp.device("SP0")(lambda w, x: w - 0.1 * ((x * w - 1) * x).mean())(w, x)
        return mp.reveal(w, to="P0")

    assert precision_losses(mp.compile(program, F32, cluster_spec=THREE).program) == []


def test_a_simulator_tells_it_once_with_the_line_whatever_the_data_are():
    compiled = program_of(lambda x: x.std(), (0, 400_000), cluster=NARROW)
    told = []
    with Simulator(NARROW) as sim:
        with mp.with_ctx(sim):
            x = mp.put("P0", np.float32([1, 2, 3, 4, 5]))  # all is well with these
        for _ in range(2):
            with pytest.warns() if not told else warnings.catch_warnings(record=True) as caught:
                mp.evaluate(sim, compiled, x)
            told.append([each for each in caught if each.category is PrecisionWarning])
    assert [len(each) for each in told] == [1, 0]
    assert told[0][0].filename.endswith("test_precision_losses.py")


def test_a_simulator_may_raise_it_or_leave_it_out():
    compiled = program_of(lambda x: x.std(), (0, 400_000), cluster=NARROW)
    for check, raises in (("raise", True), (False, False)):
        with Simulator(NARROW, check_numbers=check) as sim, mp.with_ctx(sim):
            x = mp.put("P0", np.float32([1, 2, 3, 4, 5]))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if raises:
                    with pytest.raises(PrecisionError, match=r"test_precision_losses.py:\d+: SPU"):
                        mp.evaluate(sim, compiled, x)
                else:
                    mp.evaluate(sim, compiled, x)


@pytest.mark.parametrize(
    "fn",
    [lambda x: x / 0.0, lambda x: x / jnp.arange(5), lambda x: x % 0.0],
    ids=["constant", "array", "remainder"],
)
def test_a_literal_divisor_of_0_is_told_while_tracing(fn):
    def program(x):
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(x)), to="P0")

    with pytest.warns(PrecisionWarning, match="the divisor 0 reaches"):
        mp.compile(program, F32, cluster_spec=THREE)

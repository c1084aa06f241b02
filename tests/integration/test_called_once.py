"""What a user's function changes while it is compiled, it changes once: all frontends."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp


@pytest.fixture
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        yield sim


def counting(calls, fn):
    def counted(*args):
        calls.append(fn)
        return fn(*args)

    return counted


@pytest.mark.needs("jax", "spu")
@pytest.mark.parametrize("device", ["P0", "SP0"])
@pytest.mark.parametrize(
    "data", [np.float32([1, 2]), np.int32([1, 2]), np.float64([1, 2])], ids=str
)
def test_of_arrays(sim, device, data):
    calls, programs = [], []
    fn = counting(calls, lambda x: x * np.arange(2) + 1)

    def program(x):
        programs.append(1)
        return mp.reveal(mp.device(device)(fn)(mp.seal(x) if device == "SP0" else x), to="P0")

    with mp.with_ctx(sim):
        x = mp.put("P0", data)
    compiled = mp.compile(program)
    for _ in range(2):
        assert mp.fetch(sim, mp.evaluate(sim, compiled, x)) == pytest.approx(data * [0, 1] + 1)
    assert (len(programs), len(calls)) == (1, 1)


@pytest.mark.once
@pytest.mark.needs("jax", "spu")
def test_of_loops_and_branches(sim):
    again, step, double, same = [], [], [], []
    less = counting(again, lambda x: x < 10)
    more = counting(step, lambda x: x * 2)

    def program(x):
        looped = mp.while_loop(
            lambda x: mp.reveal(mp.device("SP0")(less)(x)), mp.device("SP0")(more), mp.seal(x)
        )
        big = mp.reveal(mp.device("SP0")(lambda x: x > 12)(looped))
        return mp.uniform_cond(
            big,
            mp.device("P0")(counting(double, lambda x: x * 2)),
            mp.device("P0")(counting(same, lambda x: x)),
            mp.reveal(looped, to="P0"),
        )

    assert mp.fetch(sim, mp.evaluate(sim, program, np.int32(1))) == 32
    assert [*map(len, (again, step, double, same))] == [1, 1, 1, 1]


@pytest.mark.once
@pytest.mark.needs("ibis", "tables")
def test_of_tables(sim):
    pd = pytest.importorskip("pandas")
    calls = []
    fn = counting(calls, lambda t: t.filter(t.a > 1))
    with mp.with_ctx(sim):
        t = mp.put("P0", pd.DataFrame({"a": [1, 2, 3]}))
    found = mp.fetch(sim, mp.evaluate(sim, lambda t: mp.device("P0")(fn)(t), t))
    assert found.num_rows == 2
    assert len(calls) == 1

"""Programs that are typed op by op at a host, each run as it is typed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)


@mp.builtin_function
def double(x):
    return mp.invoke(toy.add, x, x)


def submissions(sim, monkeypatch):
    """Note which programs go to the parties."""
    sent, submit = [], sim.submit
    note = lambda program, *rest: (sent.append(program), submit(program, *rest))[1]  # noqa: E731
    monkeypatch.setattr(sim, "submit", note)
    return sent


def test_single_ops_are_run_as_they_are_typed(simulate, monkeypatch):
    sim = simulate(3)
    sent = submissions(sim, monkeypatch)
    with mp.with_ctx(sim):
        x = mp.simp.pcall_static((0, 1, 2), toy.rank)
        assert [program.name for program in sent] == ["simp.pcall_static"]
        assert repr(x) == "<i64[] at {0, 1, 2}; mp.fetch it to see>"
        assert mp.fetch(sim, x) == [0, 1, 2]
        y = mp.pshfl_s(x, [0, 1], [1, 0])
        assert mp.fetch(sim, y) == [1, 0, None]
        z = mp.pconv([y, mp.constant(7, parties=2)])
        assert mp.fetch(sim, z) == [1, 0, 7]
        assert mp.fetch(sim, double(z)) == [2, 0, 14]
        assert mp.fetch(sim, mp.pshfl(z, mp.constant(2, parties=0))) == [7, None, None]
    assert len(sent) == 5  # literals are given as they are


def test_an_error_leaves_the_session_as_it_was(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.constant(4)
        with pytest.raises(TraceError, match=r"test_at_once\.py:\d+"):
            mp.pshfl_s(x, [5], [0])
        with pytest.raises(mp.errors.PartyError, match=r"test_at_once\.py:\d+"):
            mp.invoke(toy.fail_at, x, party=1)
        assert mp.fetch(sim, double(x)) == [8, 8]


@pytest.mark.needs("jax")
def test_a_cell_is_run_again_with_other_globals(simulate):
    sim = simulate(2)
    session: dict = {"mp": mp}
    exec("@mp.builtin_function\ndef fee(x):\n    return x * rate\n", session)
    with mp.with_ctx(sim):
        price = mp.put("P0", 100)
        found = []
        for rate in (2, 3, 2):
            session["rate"] = rate
            found.append(int(mp.fetch(sim, session["fee"](price))))
    assert found == [200, 300, 200]


def test_what_is_no_longer_named_is_let_go_of(simulate):
    def session():
        x = double(mp.constant(np.arange(3)))
        plus = mp.builtin_function(lambda y: mp.invoke(toy.add, x, y))
        y = plus(plus(x))
        return [weakref.ref(value) for var in (x, y) for value in var.value.values]

    with mp.with_ctx(simulate(2)):
        held = session()
    gc.collect()
    assert not [ref for ref in held if ref() is not None]


@pytest.mark.needs("jax")
def test_local_ops_stand_between_remote_ones(simulate):
    """NumPy here, JAX at the parties, and back: fetch and constant are the seam."""
    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.simp.pcall_static(
            (0, 1), lambda r: r * 10.0 + 1, mp.simp.pcall_static((0, 1), toy.rank)
        )
        mean = np.mean(mp.fetch(sim, x))  # at the coordinator
        y = x - mp.constant(mean)  # at the parties
    assert mp.fetch(sim, y) == [-5.0, 5.0]

"""Seed 001: functions as ops, and who runs them is which kernel is registered.

The names of the tests begin with the section or the scenario.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError
from mplang_core.ir import Level, OpDef, op_defs


@mp.builtin_function
def double(x):
    return mp.invoke(toy.add, x, x)


class Seen:
    """Listens to an interpreter."""

    def __init__(self):
        self.ops = []

    def op_started(self, op, index, total):
        self.ops.append(op.opcode)

    def op_finished(self, op, index, total):
        pass


def submissions(sim, monkeypatch):
    """Note which programs go to the parties."""
    sent, submit = [], sim.submit
    note = lambda program, args: (sent.append(program), submit(program, args))[1]  # noqa: E731
    monkeypatch.setattr(sim, "submit", note)
    return sent


# -- scenarios 1 and 2: interactive, and standard mode


def test_scenario_1_single_ops_are_run_as_they_are_typed(simulate, monkeypatch):
    sim = simulate(3)
    sent = submissions(sim, monkeypatch)
    with mp.with_ctx(sim):
        x = mp.simp.pcall_static((0, 1, 2), toy.rank)
        assert [program.name for program in sent] == ["simp.pcall_static"]
        assert repr(x) == "InterpVar(i64[]@{0, 1, 2})"
        assert mp.fetch(sim, x) == [0, 1, 2]
        y = mp.pshfl_s(x, [0, 1], [1, 0])
        assert mp.fetch(sim, y) == [1, 0, None]
        z = mp.pconv([y, mp.constant(7, parties=2)])
        assert mp.fetch(sim, z) == [1, 0, 7]
        assert mp.fetch(sim, double(z)) == [2, 0, 14]
        assert mp.fetch(sim, mp.pshfl(z, mp.constant(2, parties=0))) == [7, None, None]
    assert len(sent) == 5  # literals are given as they are


def test_scenario_1_control_flow_is_run_as_it_is_typed(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        limit, one = mp.constant(5), mp.constant(1)
        below = lambda i: mp.invoke(toy.less, i, limit)  # noqa: E731
        n = mp.while_loop(below, lambda i: mp.invoke(toy.add, i, one), 0)
        assert mp.fetch(sim, n) == [5, 5]
        found = mp.uniform_cond(below(n), lambda: one, lambda: double(n))
        assert mp.fetch(sim, found) == [10, 10]


def test_scenario_1_an_error_leaves_the_session_as_it_was(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.constant(4)
        with pytest.raises(TraceError, match=r"test_seed001\.py:\d+"):
            mp.pshfl_s(x, [5], [0])
        with pytest.raises(mp.errors.PartyError, match=r"test_seed001\.py:\d+"):
            mp.invoke(toy.fail_at, x, party=1)
        assert mp.fetch(sim, double(x)) == [8, 8]


@pytest.mark.needs("jax")
def test_scenario_1_a_cell_is_run_again_with_other_globals(simulate):
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


def test_scenario_1_what_is_no_longer_named_is_let_go_of(simulate):
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
def test_scenario_2_local_ops_stand_between_remote_ones(simulate):
    """NumPy here, JAX at the parties, and back: fetch and constant are the seam."""
    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.simp.pcall_static(
            (0, 1), lambda r: r * 10.0 + 1, mp.simp.pcall_static((0, 1), toy.rank)
        )
        mean = np.mean(mp.fetch(sim, x))  # at the coordinator
        y = x - mp.constant(mean)  # at the parties
    assert mp.fetch(sim, y) == [-5.0, 5.0]


op_defs.add(
    "seed001.mean",
    OpDef("seed001.mean", lambda op, world: [op.inputs[0].type], Level.PARTY),
    provider="tests",
)


@mp.kernel("seed001.mean", role="host")
def _mean_at_the_host(ctx, x):
    """Work of the coordinator: it has references, and fetches what it needs."""
    here = [value for value in ctx.interpreter.fetch(x) if value is not None]
    return ctx.interpreter.lift(np.mean(here))


def test_scenario_2_an_op_with_a_host_kernel_runs_at_the_host(simulate, monkeypatch):
    def program(x):
        moved = mp.pshfl_s(x, [0, 1], [1, 0])
        (mean,) = mp.cur_ctx().emit("seed001.mean", [moved])
        return mp.invoke(toy.less, moved, mean)

    sim = simulate(2)
    sent = submissions(sim, monkeypatch)
    with mp.with_ctx(sim):
        x = mp.pconv([mp.constant(1.0, parties=0), mp.constant(4.0, parties=1)])
        at_once = program(x)
    assert mp.fetch(sim, at_once) == [False, True]
    seen, sent[:] = Seen(), []
    found = mp.evaluate(sim, program, x, listener=seen)
    assert mp.fetch(sim, found) == [False, True]
    assert seen.ops[-3:] == ["simp.shuffle_static", "seed001.mean", "simp.pcall_static"]
    assert [program.name for program in sent] == ["simp.shuffle_static", "simp.pcall_static"]


def test_scenario_2_standard_mode_goes_through_functions_op_by_op(simulate, monkeypatch):
    sim = simulate(2)
    sent, seen = submissions(sim, monkeypatch), Seen()
    found = mp.evaluate(sim, lambda x: double(double(x)), 3, listener=seen)
    assert mp.fetch(sim, found) == [12, 12]
    assert seen.ops == ["func.call", "simp.pcall_static"] * 2
    assert [program.name for program in sent] == ["simp.pcall_static"] * 2


# -- scenario 3: launch mode


def test_scenario_3_launch_mode_sends_the_graph_whole_and_once(simulate, monkeypatch):
    sim = simulate(2, mode="launch")
    sent, seen = submissions(sim, monkeypatch), Seen()
    found = mp.evaluate(sim, lambda x: double(double(x)), 3, listener=seen)
    assert mp.fetch(sim, found) == [12, 12]
    assert seen.ops == []  # the host has nothing to go through
    (program,) = sent
    assert [op.opcode for op in program.graph.ops] == ["func.call", "func.call"]


@pytest.mark.once
def test_scenario_3_a_mode_is_chosen_per_evaluation(simulate, monkeypatch):
    sim = simulate(2)
    sent = submissions(sim, monkeypatch)
    program = lambda x: double(double(x))  # noqa: E731
    found = [mp.evaluate(sim, program, 3, mode=mode) for mode in ("launch", "standard", "launch")]
    assert mp.fetch(sim, found) == [[12, 12]] * 3
    assert len(sent) == 1 + 2 + 1


# -- 3.2: the flow compile, evaluate, fetch


def test_section_3_2_compile_evaluate_fetch(simulate, mode):
    sim = simulate(2)
    program = mp.compile(lambda x: double(x), 1, cluster_spec=sim.cluster_spec)
    assert mp.fetch(sim, mp.evaluate(sim, program, 21, mode=mode)) == [42, 42]


def test_section_3_2_a_protocol_of_many_rounds(simulate, mode):
    """Each round everyone sends to the next, and adds what it got."""

    def program(rounds):
        x = mine = mp.simp.pcall_static(range(5), toy.rank)
        for _ in range(20):
            x = mp.pshfl_s(x, range(5), [1, 2, 3, 4, 0])
            x = mp.invoke(toy.add, x, mine)
        return x, rounds

    x = mine = np.arange(5)
    for _ in range(20):
        x = x[[1, 2, 3, 4, 0]] + mine
    sim = simulate(5)
    assert mp.fetch(sim, mp.evaluate(sim, program, 20, mode=mode))[0] == x.tolist()


# -- 4: the road map


def test_section_4_1_any_graph_can_be_called(simulate, mode):
    """A program that was parsed, by nobody traced here, is run like any other."""
    sim = simulate(2)
    text = mp.compile(lambda x: double(x), 1, cluster_spec=sim.cluster_spec).compiler_ir()
    with sim.options(mode=mode):
        (found,) = sim.evaluate(mp.parse(text), [sim.lift(21)])
    assert sim.fetch(found) == [42, 42]


def test_section_4_2_functions_close_over_values(simulate, mode):
    def program(a):
        b = mp.invoke(toy.add, a, mp.constant(1))

        @mp.builtin_function
        def plus(x):
            return mp.invoke(toy.add, x, b)

        return plus(a), plus(b)

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, 10, mode=mode)) == ([21, 21], [22, 22])


def test_section_4_2_at_once_functions_close_over_values_too(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        b = mp.constant(5)
        plus = mp.builtin_function(lambda x: mp.invoke(toy.add, x, b))
        first = plus(mp.constant(1))
        b = mp.constant(50)
        second = plus(mp.constant(1))
    assert mp.fetch(sim, (first, second)) == ([6, 6], [51, 51])

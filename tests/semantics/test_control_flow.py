"""Control flow: what is refused while tracing, what when it runs, and captured values."""

from __future__ import annotations

import re

import numpy as np
import pytest
import toy
from mplang_simulator import ThreadCommunicator

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError


def add(x, y):
    return mp.invoke(toy.add, x, y)


def less(x, y):
    return mp.invoke(toy.less, x, y)


def trace(program, *args, parties=3):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), program, *args)


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


# -- refused while tracing


def test_cond_refuses_a_predicate_that_some_do_not_hold():
    flag = lambda: mp.constant(True, parties=(0, 1))  # noqa: E731
    with pytest.raises(
        TraceError, match=r"test_control_flow.py:\d+.*held by \{0, 1\}, but \{0, 1, 2\}"
    ):
        trace(lambda: mp.uniform_cond(flag(), lambda: mp.constant(1), lambda: mp.constant(2)))


@pytest.mark.parametrize("pred", [1, 1.0, [True, False]])
def test_cond_refuses_a_predicate_that_is_no_bool_scalar(pred):
    with pytest.raises(TraceError, match="a predicate is a bool scalar"):
        trace(lambda: mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: mp.constant(1.0), r"then gives i64\[\]@\{0, 1, 2\}, else gives f64"),
        (lambda: mp.constant([1]), r"else gives i64\[1\]"),
        (lambda: mp.constant(1, parties=0), r"else gives i64\[\]@\{0\}"),
        (lambda: (mp.constant(1),), "different nests"),
        (lambda: mp.put("P0", 1), r"else gives i64\[\]@\{0\} on P0"),
    ],
)
def test_cond_refuses_branches_that_differ(other, message):
    with pytest.raises(TraceError, match=rf"test_control_flow.py:\d+.*{message}") as error:
        trace(lambda: mp.uniform_cond(mp.constant(True), lambda: mp.constant(1), other))
    assert isinstance(error.value, TypeError)


def test_cond_names_the_leaf_that_differs():
    def program():
        left = lambda: {"a": mp.constant(1), "b": mp.constant(1)}  # noqa: E731
        right = lambda: {"a": mp.constant(1), "b": mp.constant(1.0)}  # noqa: E731
        return mp.uniform_cond(mp.constant(True), left, right)

    with pytest.raises(TraceError, match=r"differ in result\['b'\]"):
        trace(program)


def test_loop_refuses_a_predicate_that_some_do_not_hold():
    def program():
        here = mp.constant(True, parties=0)
        return mp.while_loop(lambda s: here, lambda s: s, mp.constant(1))

    with pytest.raises(TraceError, match=r"held by \{0\}, but \{0, 1, 2\}"):
        trace(program)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda s: mp.constant(1.5), r"comes in as i64\[\].*goes out as f64\[\]"),
        (lambda s: mp.constant(1, parties=0), r"goes out as i64\[\]@\{0\}"),
        (lambda s: (s, s), "returns the nest of its state"),
        (lambda s: mp.put("P0", 1), "on P0"),
    ],
)
def test_loop_refuses_a_body_that_changes_a_type(body, message):
    with pytest.raises(TraceError, match=message):
        trace(lambda: mp.while_loop(lambda s: mp.constant(False), body, 0))


def test_loop_names_the_leaf_that_changes():
    def program():
        body = lambda s: {"i": s["i"], "x": mp.constant(1.5)}  # noqa: E731
        return mp.while_loop(lambda s: mp.constant(False), body, {"i": 0, "x": 0})

    with pytest.raises(TraceError, match=r"changes state\['x'\]"):
        trace(program)


def test_loop_refuses_a_condition_of_two_values():
    with pytest.raises(TraceError, match="gives one value"):
        trace(lambda: mp.while_loop(lambda s: (s, s), lambda s: s, True))


def test_loop_refuses_two_states_and_says_how_to_give_them():
    with pytest.raises(TraceError, match=r"test_control_flow\.py:\d+: .* into a tuple: \(x, y\)"):
        trace(lambda: mp.while_loop(lambda s: mp.constant(False), lambda s: s, 0, 1.0))


def test_what_is_no_value_cannot_be_carried():
    with pytest.raises(TraceError, match="got a str"):
        trace(lambda: mp.while_loop(lambda s: mp.constant(False), lambda s: s, "x"))


@pytest.mark.parametrize("carry", [lambda fn: (1, fn), lambda fn: fn])
def test_a_function_is_no_state_of_control_flow(carry):
    loop = lambda: mp.while_loop(  # noqa: E731
        lambda s: mp.constant(False), lambda s: s, carry(abs)
    )
    with pytest.raises(
        TraceError, match=r"test_control_flow\.py:\d+: control flow carries .*got a builtin"
    ):
        trace(loop)


# -- refused when it runs


def test_parties_that_disagree_are_stopped_without_the_value(simulate, mode):
    def program():
        mine = less(mp.simp.pcall_static((0, 1, 2), toy.rank), mp.constant(2))
        return mp.uniform_cond(mine, lambda: mp.constant(1), lambda: mp.constant(2))

    message = r"test_control_flow\.py:\d+: the parties disagree on a predicate.*mp\.reveal"
    with pytest.raises(PartyError, match=message) as error:
        run(simulate(3), program, mode)
    assert isinstance(error.value, RuntimeError)
    assert "True" not in str(error.value)
    assert "False" not in str(error.value)
    assert "test_control_flow.py" in str(error.value.location)


def test_each_party_is_told_that_they_disagree(simulate, mode, monkeypatch):
    def program():
        mine = less(mp.simp.pcall_static((0, 1, 2), toy.rank), mp.constant(2))
        return mp.uniform_cond(mine, lambda: mp.constant(1), lambda: mp.constant(2))

    told, abort = [], ThreadCommunicator.abort

    def noting(self, run, reason):
        told.append(reason)
        abort(self, run, reason)

    monkeypatch.setattr(ThreadCommunicator, "abort", noting)
    with pytest.raises(PartyError):
        run(simulate(3), program, mode)
    line = re.compile(r"test_control_flow\.py:\d+: the parties disagree on a predicate$")
    assert any(map(line.search, told))


def test_parties_that_disagree_in_a_loop_are_stopped(simulate, mode):
    def program():
        rank = mp.simp.pcall_static((0, 1, 2), toy.rank)
        one = mp.constant(1)
        return mp.while_loop(lambda i: less(i, rank), lambda i: add(i, one), 0)

    with pytest.raises(PartyError, match="simp.while_loop.*the parties disagree"):
        run(simulate(3), program, mode)


def test_parties_that_disagree_late_in_a_loop_are_stopped(simulate):
    def program():
        rank = mp.simp.pcall_static(tuple(range(5)), toy.rank)
        one, many = mp.constant(1), mp.constant(600)
        return mp.while_loop(lambda i: less(i, add(rank, many)), lambda i: add(i, one), 0)

    with pytest.raises(PartyError, match="simp.while_loop.*the parties disagree"):
        run(simulate(5), program, "launch")


def test_the_simulator_goes_on_after_a_disagreement(simulate, mode):
    sim = simulate(3)

    def bad():
        mine = less(mp.simp.pcall_static((0, 1, 2), toy.rank), mp.constant(1))
        return mp.uniform_cond(mine, lambda: mp.constant(1), lambda: mp.constant(2))

    for _ in range(3):
        with pytest.raises(PartyError):
            run(sim, bad, mode)
        assert run(sim, lambda: mp.constant(1), mode) == [1, 1, 1]


# -- captured values


def test_captures_in_both_branches(simulate, mode):
    def program(flag):
        a, b = mp.constant(10), mp.constant(20)
        return mp.uniform_cond(flag, lambda x: add(x, a), lambda x: add(x, b), mp.constant(1))

    sim = simulate(2)
    assert run(sim, program, mode, True) == [11, 11]
    assert run(sim, program, mode, False) == [21, 21]


def test_captures_three_deep_with_shuffles_and_an_unknown_mask(simulate, mode):
    def program(n):
        ranks = mp.simp.pcall_static((0, 1, 2), toy.rank)
        one, ten = mp.constant(1), mp.constant(10)

        def body(state):
            i, x = state

            def even():
                def inner(s):
                    j, y = s
                    unknown = mp.simp.pcall_dynamic(toy.add, y, ranks)
                    known = mp.peval(toy.add(unknown, ten).pfunc, [unknown, ten], (0, 1, 2))[0]
                    return add(j, one), mp.pshfl_s(known, (0, 1, 2), (1, 2, 0))

                return mp.while_loop(lambda s: less(s[0], i), inner, (mp.constant(0), x))[1]

            def odd():
                return add(x, i)

            return add(i, one), mp.uniform_cond(less(i, mp.constant(3)), even, odd)

        return mp.while_loop(lambda s: less(s[0], n), body, (mp.constant(0), ranks))[1]

    x, ranks = np.arange(3), np.arange(3)
    for i in range(5):
        if i < 3:
            for _ in range(i):
                x = (x + ranks + 10)[[1, 2, 0]]
        else:
            x = x + i
    assert run(simulate(3), program, mode, 5) == x.tolist()


def test_a_capture_inside_of_a_pcall(simulate, mode):
    def program():
        x = mp.constant(5)

        @mp.function
        def at_one_party(y):
            return mp.invoke(toy.add, y, x)

        return mp.simp.pcall_static((1,), at_one_party, mp.constant(1))

    assert run(simulate(2), program, mode) == [None, 6]


def test_a_number_is_carried_and_returned(simulate, mode):
    def program(flag):
        return mp.uniform_cond(flag, lambda x: (x, 1), lambda x: (2, x), 7)

    assert run(simulate(2), program, mode, False) == ([2, 2], [7, 7])


def test_control_flow_at_once(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.constant(3)
        y = mp.uniform_cond(less(x, mp.constant(4)), lambda: add(x, x), lambda: x)
        z = mp.while_loop(lambda i: less(i, y), lambda i: add(i, x), 0)
        assert mp.fetch(sim, (y, z)) == ([6, 6], [6, 6])
        double = mp.builtin_function(lambda v: add(v, v))
        other = mp.uniform_cond(less(z, mp.constant(5)), lambda: x, lambda: double(z))
        assert mp.fetch(sim, other) == [12, 12]


def test_a_device_survives_control_flow(simulate):
    sim = simulate(2)

    def program(flag):
        x = mp.put("P1", 4)
        y = mp.uniform_cond(flag, lambda: x, lambda: mp.put("P1", 5))
        return mp.while_loop(lambda s: mp.constant(False), lambda s: s, y)

    result = mp.evaluate(sim, program, False)
    assert result.device.name == "P1"
    assert mp.fetch(sim, result) == 5


# -- what is in the program


def test_a_branch_and_a_loop_are_one_op_each_of_the_program():
    def pipeline(flag, x):
        return mp.while_loop(
            lambda s: mp.invoke(toy.less, s, x),
            lambda s: mp.invoke(toy.add, s, x),
            mp.uniform_cond(flag, lambda: x, lambda: mp.invoke(toy.add, x, x)),
        )

    tfn = trace(pipeline, True, 1)
    assert [op.opcode for op in tfn.program.graph.ops] == ["simp.uniform_cond", "simp.while_loop"]


def test_which_function_runs_is_a_branch_with_both_in_the_program(simulate, mode):
    def good(condition, x):
        plus = lambda v: mp.invoke(toy.add, v, mp.constant(1))  # noqa: E731
        twice = lambda v: mp.invoke(toy.scale, v)  # noqa: E731
        return mp.uniform_cond(condition, plus, twice, x)

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, good, True, 5, mode=mode)) == [6, 6]
    assert mp.fetch(sim, mp.evaluate(sim, good, False, 5, mode=mode)) == [10, 10]
    ir = mp.compile(good, True, 5, cluster_spec=sim.cluster_spec).compiler_ir()
    assert "toy.add" in ir
    assert "toy.scale" in ir


def test_captures_of_both_branches_are_operands_of_the_one_op():
    def program(pred, x):
        outer, other = mp.constant(1), mp.constant(2)
        return mp.uniform_cond(pred, lambda v: add(v, outer), lambda v: add(v, other), x)

    cond = trace(program, True, 5).program.graph.ops[-1]
    assert cond.opcode == "simp.uniform_cond"
    assert cond.attrs["verify_uniform"] is True
    assert len(cond.inputs) == 4
    assert [len(branch.inputs) for branch in cond.regions.values()] == [3, 3]


# -- what is run


def test_a_predicate_that_all_know_chooses_the_branch(simulate, mode):
    def good(x):
        pred = less(x, mp.constant(3))
        plus = lambda v: add(v, mp.constant(1))  # noqa: E731
        return mp.uniform_cond(pred, plus, lambda v: mp.invoke(toy.scale, v), x)

    sim = simulate(2)
    assert run(sim, good, mode, 2) == [3, 3]
    assert run(sim, good, mode, 5) == [10, 10]


def test_a_predicate_of_an_unknown_mask_is_checked_when_it_runs(simulate, mode):
    def program(everyone):
        known = mp.constant(1) if everyone else mp.constant(1, parties=0)
        pred = mp.simp.pcall_dynamic(toy.less, known, mp.constant(2))
        assert pred.pmask is None
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    sim = simulate(2)
    assert run(sim, lambda: program(True), mode) == [1, 1]
    with pytest.raises(PartyError, match=r"test_control_flow\.py:\d+.*predicate"):
        run(sim, lambda: program(False), mode)


def test_the_comparison_can_be_left_out(simulate, mode):
    """Then each party branches by its own; a program says so only where it knows better."""

    def program():
        pred = less(mp.simp.pcall_static((0, 1), toy.rank), mp.constant(1))
        one, two = lambda: mp.constant(1), lambda: mp.constant(2)
        return mp.uniform_cond(pred, one, two, verify_uniform=False)

    assert run(simulate(2), program, mode) == [1, 2]


@pytest.mark.needs("jax")
def test_gradient_descent_stops_for_all_at_once(simulate, mode):
    def program(x, threshold):
        def cond_fn(state):
            return abs(state - 3.0) > threshold

        def body_fn(state):
            grad = 2 * (state - 3.0)
            return state - 0.1 * grad

        return mp.while_loop(cond_fn, body_fn, x)

    expected = 0.0
    while abs(expected - 3) > 1e-3:
        expected -= 0.1 * 2 * (expected - 3)
    assert run(simulate(2), program, mode, 0.0, 1e-3) == pytest.approx([expected] * 2)


@pytest.mark.needs("jax")
def test_a_loop_of_each_party_for_itself_is_a_loop_of_the_engine(simulate, mode):
    import jax

    def program():
        until = lambda limit: jax.lax.while_loop(  # noqa: E731
            lambda s: s < limit, lambda s: s * 2, jax.numpy.ones_like(limit)
        )
        limits = mp.pconv([mp.constant(10, parties=0), mp.constant(100, parties=1)])
        return mp.simp.pcall_static((0, 1), until, limits)

    assert run(simulate(2), program, mode) == [16, 128]

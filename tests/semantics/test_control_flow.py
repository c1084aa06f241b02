"""Control flow: what is refused while tracing, what when it runs, and captured values."""

from __future__ import annotations

import numpy as np
import pytest
import toy

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
    with pytest.raises(TraceError, match=r"test_control_flow.py:\d+.*held by \{0, 1\}, but"):
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
    with pytest.raises(TraceError, match=message):
        trace(lambda: mp.uniform_cond(mp.constant(True), lambda: mp.constant(1), other))


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


def test_what_is_no_value_cannot_be_carried():
    with pytest.raises(TraceError, match="got a str"):
        trace(lambda: mp.while_loop(lambda s: mp.constant(False), lambda s: s, "x"))


# -- refused when it runs


def test_parties_that_disagree_are_stopped_without_the_value(simulate, mode):
    def program():
        mine = less(mp.simp.pcall_static((0, 1, 2), toy.rank), mp.constant(2))
        return mp.uniform_cond(mine, lambda: mp.constant(1), lambda: mp.constant(2))

    with pytest.raises(PartyError, match="the parties disagree on a predicate") as error:
        run(simulate(3), program, mode)
    assert "True" not in str(error.value)
    assert "False" not in str(error.value)
    assert "test_control_flow.py" in str(error.value.location)


def test_parties_that_disagree_in_a_loop_are_stopped(simulate, mode):
    def program():
        rank = mp.simp.pcall_static((0, 1, 2), toy.rank)
        one = mp.constant(1)
        return mp.while_loop(lambda i: less(i, rank), lambda i: add(i, one), 0)

    with pytest.raises(PartyError, match="simp.while_loop.*the parties disagree"):
        run(simulate(3), program, mode)


def test_a_predicate_that_turns_out_missing_is_an_error(simulate, mode):
    def program():
        some = mp.simp.pcall_dynamic(toy.less, mp.constant(1, parties=0), mp.constant(2))
        return mp.uniform_cond(some, lambda: mp.constant(1), lambda: mp.constant(2))

    with pytest.raises(PartyError, match="predicate"):
        run(simulate(3), program, mode)


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


def test_a_device_survives_control_flow(simulate):
    sim = simulate(2)

    def program(flag):
        x = mp.put("P1", 4)
        y = mp.uniform_cond(flag, lambda: x, lambda: mp.put("P1", 5))
        return mp.while_loop(lambda s: mp.constant(False), lambda s: s, y)

    result = mp.evaluate(sim, program, False)
    assert result.device.name == "P1"
    assert mp.fetch(sim, result) == 5

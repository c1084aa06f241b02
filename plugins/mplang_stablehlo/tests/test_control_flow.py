"""Loops and branches without messages run as one module; others stay as they are."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_stablehlo.control_flow import MAX_CLASSES

import mplang_core as mp
from mplang_core.ext import Effects, PartyError, prepared


def traced(fn, *args, parties=2):
    return mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(parties)).program


def flow(program):
    """The loops and branches that stay."""
    names = ("simp.while_loop", "simp.uniform_cond")
    return [op.opcode for op in prepared(program).graph.walk() if op.opcode in names]


def run(fn, *args, parties=2, mode="launch"):
    with mp.Simulator(mp.ClusterSpec.simple(parties), timeout=20) as sim:
        return mp.fetch(sim, mp.evaluate(sim, fn, *args, mode=mode))


def both(fn, *args, parties=2):
    """The result, the same in both modes."""
    one, other = (run(fn, *args, parties=parties, mode=mode) for mode in ("launch", "standard"))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_equal(a, b)
    return one


def sent_by(state):
    """The messages that a party sent to each other one."""
    return [link.sent_messages for link in state.links.values()]


def summed(n):
    def step(state):
        i, total = state
        return i + 1, total + i

    return mp.while_loop(lambda state: state[0] < n, step, (0, 0))[1]


def test_a_loop_of_integers_is_a_module():
    assert flow(traced(lambda: summed(mp.constant(1000)))) == []
    assert both(lambda: summed(mp.constant(1000))) == [499500, 499500]


@pytest.mark.once
def test_a_public_bound_is_known_when_the_run_begins():
    assert flow(traced(summed, 100)) == ["simp.while_loop"]  # of no run
    assert both(summed, 100) == [4950, 4950]
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        mp.evaluate(sim, summed, 100, mode="launch")
        assert [sum(sent_by(state)) for state in sim.progress()] == [0, 0]


def test_a_loop_that_never_turns():
    assert both(summed, 0) == [0, 0]


def test_a_state_that_begins_twice_with_one_value():
    def program():
        zero = mp.constant(0)
        step = lambda s: (s[0] + 1, s[1] + 2)  # noqa: E731
        return mp.while_loop(lambda s: s[0] < 5, step, (zero, zero))

    assert [v[0] for v in both(program)] == [5, 10]


def test_states_change_places():
    def fibonacci():
        step = lambda s: (s[1], s[0] + s[1], s[2] + 1)  # noqa: E731
        return mp.while_loop(lambda s: s[2] < 30, step, (0, 1, 0))

    assert flow(traced(fibonacci)) == []
    assert both(fibonacci)[0][0] == 832040


def test_literals_and_captures_in_regions():
    def program(base):
        def body(i):
            return i + mp.constant(2) + base

        return mp.while_loop(lambda i: i < 50, body, 0)

    assert both(program, 3)[0] == 50


def test_branches_in_loops_in_branches():
    def program(flag):
        def body(state):
            i, x = state
            x = mp.uniform_cond(i % 3 == 0, lambda x: x * 2, lambda x: x + 1, x)
            return i + 1, x

        def loop(x):
            return mp.while_loop(lambda s: s[0] < 10, body, (0, x))[1]

        return mp.uniform_cond(flag, loop, lambda x: x - 1, mp.constant(1))

    x = 1
    for i in range(10):
        x = x * 2 if i % 3 == 0 else x + 1
    assert both(program, True)[0] == x
    assert both(program, False)[0] == 0


def test_nested_loops():
    def program():
        def row(state):
            i, total = state
            inner = mp.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + 1), (0, total))
            return i + 1, inner[1]

        return mp.while_loop(lambda s: s[0] < 20, row, (0, 0))[1]

    assert flow(traced(program)) == []
    assert both(program)[0] == sum(range(20))


def test_each_party_trains_on_its_own():
    """Two classes of parties; what all hold is joined again."""
    data = [np.arange(4, dtype=np.float32), np.ones(3, np.float32)]

    def program(x, y):
        def body(state):
            i, w, v = state
            w = mp.device("P0")(lambda w, x: w + x.sum())(w, x)
            v = mp.device("P1")(lambda v, y: v * 2 + y)(v, y)
            return i + 1, w, v

        w, v = mp.put("P0", np.float32(0)), mp.put("P1", np.zeros(3, np.float32))
        return mp.while_loop(lambda s: s[0] < 7, body, (0, w, v))

    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        x, y = mp.evaluate(sim, lambda: (mp.put("P0", data[0]), mp.put("P1", data[1])))
        kinds = [mp.compile(program, x, y, cluster_spec=sim.cluster_spec).program]
        assert flow(kinds[0]) == []
        for mode in ("launch", "standard"):
            turns, w, v = mp.fetch(sim, mp.evaluate(sim, program, x, y, mode=mode))
            assert turns == [7, 7, 7]
            assert w == 42
            np.testing.assert_array_equal(v, np.full(3, 2**7 - 1))


def test_parties_that_all_do_something_else_keep_the_loop():
    count = MAX_CLASSES + 1

    def program(xs):
        def body(state):
            i, xs = state
            return i + 1, [mp.device(f"P{k}")(lambda x: x + 1)(x) for k, x in enumerate(xs)]

        xs = [mp.put(f"P{k}", k) for k in range(count)]
        return mp.while_loop(lambda s: s[0] < 3, body, (0, xs))[1]

    assert flow(traced(lambda: program(None), parties=count)) == ["simp.while_loop"]
    assert run(lambda: program(None), parties=count) == [k + 3 for k in range(count)]


def test_a_loop_with_messages_stays():
    def program():
        def body(state):
            i, x = state
            return i + 1, mp.put("P0", mp.device("P1")(lambda x: x * 2)(mp.put("P1", x)))

        return mp.while_loop(lambda s: s[0] < 4, body, (0, mp.put("P0", 1)))[1]

    assert flow(traced(program)) == ["simp.while_loop"]
    assert run(program) == 16


seen: list[int] = []


@mp.simple_op("flow.note", effects=Effects.ANY)
def note(x: mp.TensorType) -> tuple[()]:
    """Notes a number, and gives nothing."""
    return ()


@mp.kernel("flow.note")
def _note(ctx, x):
    seen.append(int(x))
    return ()


@pytest.mark.once
def test_an_op_with_effects_keeps_the_loop():
    def program():
        def body(i):
            mp.simp.pcall_static(0, note, i)
            return i + 1

        return mp.while_loop(lambda i: i < 4, body, 0)

    assert flow(traced(program)) == ["simp.while_loop"]
    seen.clear()
    assert run(program) == [4, 4]
    assert seen == [0, 1, 2, 3]


def test_a_predicate_of_floats_is_compared():
    def program():
        return mp.while_loop(lambda x: x < 5.0, lambda x: x + 0.5, 0.0)

    assert flow(traced(program)) == ["simp.while_loop"]
    assert both(program) == [5.0, 5.0]


def test_unless_the_user_says_that_it_is_the_same():
    def program():
        return mp.while_loop(lambda x: x < 5.0, lambda x: x + 0.5, 0.0, verify_uniform=False)

    assert flow(traced(program)) == []
    assert both(program) == [5.0, 5.0]


def test_a_predicate_that_was_sent_is_compared():
    def program():
        flag = mp.pshfl_s(mp.put("P0", True), [0, 1], [0, 0])
        return mp.uniform_cond(flag, lambda: mp.constant(1), lambda: mp.constant(2))

    assert flow(traced(program)) == ["simp.uniform_cond"]
    assert run(program) == [1, 1]


def test_values_that_a_party_holds_by_itself_are_compared():
    def program(n):
        return mp.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        mine = mp.evaluate(
            sim, lambda: mp.pconv([mp.constant(3, parties=0), mp.constant(4, parties=1)])
        )
        with pytest.raises(PartyError, match="the parties disagree on a predicate"):
            mp.evaluate(sim, program, mine, mode="launch")
        assert mp.fetch(sim, mp.evaluate(sim, program, 3, mode="launch")) == [3, 3]
        with pytest.raises(PartyError, match="the parties disagree on a predicate"):
            mp.evaluate(sim, program, mine, mode="launch")


@pytest.mark.needs("ibis")
def test_tables_keep_the_loop():
    import pyarrow as pa

    def program(t):
        more = lambda s: (s[0] + 1, mp.device("P0")(lambda t: t.filter(t.age > 1))(s[1]))  # noqa: E731
        return mp.while_loop(lambda s: s[0] < 2, more, (0, t))[1]

    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        with mp.with_ctx(sim):
            people = mp.put("P0", pa.table({"age": [1, 2, 3]}))
        whole = mp.compile(program, people, cluster_spec=sim.cluster_spec)
        assert flow(whole.program) == ["simp.while_loop"]
        assert mp.fetch(sim, mp.evaluate(sim, whole, people, mode="launch")).num_rows == 2


def test_a_declared_range_is_not_skipped():
    def program():
        def body(state):
            i, x = state
            return i + 1, mp.put("P0", mp.device("P0")(lambda x: x * 2)(x), range=(0, 10))

        return mp.while_loop(lambda s: s[0] < 9, body, (0, mp.put("P0", 1)))[1]

    with pytest.raises(PartyError, match="outside of the range"):
        run(program)


def test_matrices_and_floats():
    a = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)

    def program(a):
        def body(state):
            i, v = state
            w = mp.device("P0")(lambda a, v: a @ v)(a, v)
            return i + 1, mp.device("P0")(lambda w: w / jnp.linalg.norm(w))(w)

        v = mp.put("P0", np.ones(5, np.float32))
        return mp.while_loop(lambda s: s[0] < 30, body, (0, v))[1]

    v = np.ones(5, np.float32)
    for _ in range(30):
        v = a @ v
        v /= np.linalg.norm(v)
    found = run(lambda: program(mp.put("P0", a)))
    np.testing.assert_allclose(found, v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parties", [5, 6])
def test_many_parties_that_disagree_are_stopped(parties):
    def program(n):
        return mp.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    with mp.Simulator(mp.ClusterSpec.simple(parties), timeout=20) as sim:
        parts = lambda: mp.pconv(  # noqa: E731
            [mp.constant(3, parties=range(parties - 1)), mp.constant(9, parties=parties - 1)]
        )
        mine = mp.evaluate(sim, parts)
        with pytest.raises(PartyError, match="the parties disagree on a predicate"):
            mp.evaluate(sim, program, mine, mode="launch")


def test_a_turn_of_a_loop_that_stays_runs_one_module():
    def program():
        return mp.while_loop(lambda x: x < 5.0, lambda x: x + 0.5, 0.0)

    (loop,) = [op for op in prepared(traced(program)).graph.ops if op.opcode == "simp.while_loop"]
    assert [op.opcode for op in loop.regions["cond"].walk()] == []
    assert [op.opcode for op in loop.regions["body"].walk()] == ["simp.pcall_static", "jax.run"]
    assert both(program) == [5.0, 5.0]


def test_conditions_within_conditions_and_with_captures():
    def program(n, step):
        def outer(state):
            i, x = state
            inner = mp.while_loop(lambda y: y < i * n, lambda y: y + step, x * 0)
            return i + 1, x + inner

        return mp.while_loop(lambda state: state[0] < n, outer, (0.0, 1.0))

    i, x = 0.0, 1.0
    while i < 4.0:
        y = 0.0
        while y < i * 4.0:
            y += 0.75
        i, x = i + 1, x + y
    found = both(program, 4.0, 0.75)
    np.testing.assert_allclose(found, [[i, i], [x, x]])


def test_a_loop_that_takes_no_turn():
    assert both(lambda: mp.while_loop(lambda x: x < 0.0, lambda x: x + 1.0, 3.0)) == [3.0, 3.0]


@pytest.mark.once
def test_what_a_condition_sends_keeps_its_place():
    def program():
        def more(state):
            return mp.pshfl_s(state[1] < 3.0, [0, 1], [0, 0])

        return mp.while_loop(more, lambda s: (s[0] + 1, s[1] + 1.0), (0, 0.0))

    (loop,) = [op for op in prepared(traced(program)).graph.ops if op.opcode == "simp.while_loop"]
    assert loop.regions["cond"].ops
    np.testing.assert_equal(both(program), [[3, 3], [3.0, 3.0]])


def test_an_error_in_a_folded_condition_names_its_line():
    def program():
        flag = mp.pconv([mp.constant(2.0, parties=0), mp.constant(9.0, parties=1)])
        return mp.while_loop(lambda x: x < flag, lambda x: x + 1.0, 0.0)

    with pytest.raises(PartyError, match=r"test_control_flow.py:\d+: the parties disagree"):
        run(program)

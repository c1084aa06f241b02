"""Seed 003, chapter 2, the principles: a closed world, traced functions, two contexts.

The names of the tests begin with the section. What is refused elsewhere, too, is in
``semantics/test_bad_input.py``.
"""

from __future__ import annotations

import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)


@mp.function
def add_twice(x, y):
    z = mp.invoke(toy.add, x, y)
    return mp.invoke(toy.add, z, y)


def opcodes(tfn):
    return [op.opcode for op in tfn.program.graph.ops]


# -- 2.1 the closed world


def test_2_1_values_and_literals_go_in_and_come_out(simulate, mode):
    def pipeline(x, n, f):
        return mp.invoke(toy.scale, x), n, f, 7, 2.5, None

    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, pipeline, 3, 4, 0.5, mode=mode))
    assert found == ([6, 6], [4, 4], [0.5, 0.5], [7, 7], [2.5, 2.5], None)


def test_2_1_structured_control_flow_is_part_of_the_program():
    def pipeline(flag, x):
        return mp.while_loop(
            lambda s: mp.invoke(toy.less, s, x),
            lambda s: mp.invoke(toy.add, s, x),
            mp.uniform_cond(flag, lambda: x, lambda: mp.invoke(toy.add, x, x)),
        )

    tfn = mp.trace(mp.TraceContext(CLUSTER), pipeline, True, 1)
    assert opcodes(tfn) == ["simp.uniform_cond", "simp.while_loop"]


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: (1, f), lambda f: {"fn": [f]}])
def test_2_1_a_function_over_a_traced_value_does_not_come_out(wrap):
    def make_adder(x):
        return wrap(lambda y: mp.invoke(toy.add, x, y))

    with pytest.raises(TraceError, match=r"chapter_2\.py:\d+: make_adder returns a function; a tr"):
        mp.trace(mp.TraceContext(CLUSTER), make_adder, 1)


@pytest.mark.parametrize("carry", [lambda fn: (1, fn), lambda fn: fn])
def test_2_1_a_function_is_no_state_of_control_flow(carry):
    loop = lambda: mp.while_loop(  # noqa: E731
        lambda s: mp.constant(False), lambda s: s, carry(abs)
    )
    with pytest.raises(
        TraceError, match=r"chapter_2\.py:\d+: control flow carries .*got a builtin"
    ):
        mp.trace(mp.TraceContext(CLUSTER), loop)


def test_2_1_a_function_given_as_an_argument_is_known_while_tracing(simulate):
    """It is Python that shapes the program, such as a loop over layers; nothing of it is left."""
    sim = simulate(2)
    program = lambda fn, x: fn(fn(x))  # noqa: E731
    found = mp.evaluate(sim, program, lambda x: mp.invoke(toy.scale, x), 3)
    assert mp.fetch(sim, found) == [12, 12]


# -- 2.2 TracedFunction


def test_2_2_a_traced_function_is_applied_and_is_no_value(simulate):
    sim = simulate(2)
    tfn = mp.trace(mp.TraceContext(sim.cluster_spec), add_twice, 1, 2)
    assert isinstance(tfn, mp.TracedFunction)
    assert not isinstance(tfn, mp.MPObject)
    assert mp.fetch(sim, mp.apply(sim, tfn, 10, 4)) == [18, 18]


def test_2_2_it_keeps_how_arguments_and_results_nest_and_what_it_captured():
    from mplang_core.feop import flatten

    tracer = mp.TraceContext(CLUSTER)
    outer = mp.constant(tracer, 5)

    def program(pair, *, by):
        return {"sum": mp.invoke(toy.add, pair[0], outer), "rest": [pair[1], by]}

    tfn = mp.trace(tracer, program, (1, 2), by=3)
    assert tfn.in_struct == flatten((((1, 2),), {"by": 3}))[1]
    assert tfn.out_struct == flatten({"sum": 1, "rest": [2, 3]})[1]
    assert list(tfn.capture_map) == [outer]
    assert len(tfn.in_vars) == 3
    assert len(tfn.out_vars) == 3


def test_2_2_a_value_cannot_be_called():
    with pytest.raises(TypeError, match="not callable"):
        mp.trace(mp.TraceContext(CLUSTER), lambda f, x: f(x), 1, 2)


def test_2_2_which_function_runs_is_uniform_cond_with_both_in_the_program(simulate, mode):
    def good(condition, x):
        plus = lambda v: mp.invoke(toy.add, v, mp.constant(1))  # noqa: E731
        twice = lambda v: mp.invoke(toy.scale, v)  # noqa: E731
        return mp.uniform_cond(condition, plus, twice, x)

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, good, True, 5, mode=mode)) == [6, 6]
    assert mp.fetch(sim, mp.evaluate(sim, good, False, 5, mode=mode)) == [10, 10]
    ir = mp.compile(good, True, 5, cluster_spec=CLUSTER).compiler_ir()
    assert "toy.add" in ir
    assert "toy.scale" in ir


# -- 2.3 two contexts


def test_2_3_the_same_function_builds_a_graph_or_runs(simulate):
    tracer = mp.TraceContext(CLUSTER)
    with mp.with_ctx(tracer):
        assert mp.cur_ctx() is tracer
        later = add_twice(mp.constant(1), mp.constant(2))
    assert isinstance(later, mp.TraceVar)
    assert [op.opcode for op in tracer.graph.ops] == ["simp.constant"] * 2 + [
        "simp.pcall_static"
    ] * 2

    sim = simulate(2)
    assert isinstance(sim, mp.InterpContext)
    with mp.with_ctx(sim):
        assert mp.cur_ctx() is sim
        now = add_twice(mp.constant(1), mp.constant(2))
    assert isinstance(now, mp.InterpVar)
    assert mp.fetch(sim, now) == [5, 5]


@pytest.mark.once
def test_2_3_an_op_looks_at_its_context(simulate):
    def where():
        ctx = mp.cur_ctx()
        return "trace" if isinstance(ctx, mp.TraceContext) else "run"

    seen = []
    sim = simulate(2)
    with mp.with_ctx(sim):
        seen.append(where())
        mp.evaluate(sim, lambda: seen.append(where()))
        seen.append(where())
    assert seen == ["run", "trace", "run"]


def test_2_3_context_switching_within_one_context_is_nothing():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 1)
    assert tracer.adopt(x) is x


def test_2_3_context_switching_into_a_trace_captures():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 1)
    inner = tracer.fork()
    captured = inner.capture(x)
    assert captured.ctx is inner
    assert captured.type == x.type
    assert inner.capture(x) is captured
    assert inner.graph.inputs == [captured.value]


def test_2_3_context_switching_into_a_trace_captures_what_a_host_holds(simulate, mode):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.constant(20))
    found = mp.evaluate(sim, lambda y: add_twice(y, x), 2, mode=mode)
    assert mp.fetch(sim, found) == [42, 42]


def test_2_3_context_switching_into_an_interpreter_is_refused(simulate):
    one, other = simulate(2), simulate(2)
    x = mp.evaluate(one, lambda: mp.constant(1))
    with mp.with_ctx(other), pytest.raises(TraceError, match=r"chapter_2\.py:\d+.*another context"):
        add_twice(x, x)
    tracer = mp.TraceContext(CLUSTER)
    y = mp.constant(tracer, 1)
    with mp.with_ctx(one), pytest.raises(TraceError, match=r"chapter_2\.py:\d+.*another context"):
        add_twice(y, y)


def test_2_3_contexts_nest_and_come_back_also_after_an_error(simulate):
    sim, tracer = simulate(2), mp.TraceContext(CLUSTER)
    with mp.with_ctx(sim):
        with pytest.raises(KeyError), mp.with_ctx(tracer):
            raise KeyError("mine")
        assert mp.cur_ctx() is sim
    with pytest.raises(TraceError, match="no context to work in"):
        mp.cur_ctx()


def test_2_3_with_ctx_takes_contexts_only():
    with (
        pytest.raises(TraceError, match=r"chapter_2\.py:\d+: with_ctx takes a host"),
        mp.with_ctx(CLUSTER),
    ):
        pass

"""Contexts: where a function runs, how contexts nest, and how values go from one to another."""

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


def test_the_same_function_builds_a_graph_or_runs(simulate):
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
def test_an_op_looks_at_its_context(simulate):
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


def test_a_value_stays_itself_within_one_context():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 1)
    assert tracer.adopt(x) is x


def test_a_value_from_around_is_captured_once_in_a_trace():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 1)
    inner = tracer.fork()
    captured = inner.capture(x)
    assert captured.ctx is inner
    assert captured.type == x.type
    assert inner.capture(x) is captured
    assert inner.graph.inputs == [captured.value]


def test_what_a_host_holds_is_captured_in_a_trace(simulate, mode):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.constant(20))
    found = mp.evaluate(sim, lambda y: add_twice(y, x), 2, mode=mode)
    assert mp.fetch(sim, found) == [42, 42]


def test_values_of_another_context_are_refused_at_a_host(simulate):
    one, other = simulate(2), simulate(2)
    x = mp.evaluate(one, lambda: mp.constant(1))
    with (
        mp.with_ctx(other),
        pytest.raises(TraceError, match=r"test_contexts\.py:\d+.*another context"),
    ):
        add_twice(x, x)
    tracer = mp.TraceContext(CLUSTER)
    y = mp.constant(tracer, 1)
    with (
        mp.with_ctx(one),
        pytest.raises(TraceError, match=r"test_contexts\.py:\d+.*another context"),
    ):
        add_twice(y, y)


def test_contexts_nest_and_come_back_also_after_an_error(simulate):
    sim, tracer = simulate(2), mp.TraceContext(CLUSTER)
    with mp.with_ctx(sim):
        with pytest.raises(KeyError), mp.with_ctx(tracer):
            raise KeyError("mine")
        assert mp.cur_ctx() is sim
    with pytest.raises(TraceError, match="no context to work in"):
        mp.cur_ctx()


def test_with_ctx_takes_contexts_only():
    with (
        pytest.raises(TraceError, match=r"test_contexts\.py:\d+: with_ctx takes a host"),
        mp.with_ctx(CLUSTER),
    ):
        pass


def test_a_function_is_called_in_the_context_of_its_arguments():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 3)
    y = mp.builtin_function(lambda v: mp.invoke(toy.add, v, v))(x)
    assert y.ctx is tracer
    assert [op.opcode for op in tracer.graph.ops] == ["simp.constant", "func.call"]

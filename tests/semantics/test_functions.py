"""Functions: Python code that is traced, inlined, applied or run at once; and their arguments."""

from __future__ import annotations

import collections
import re
import threading

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError
from mplang_core.feop import flatten

CLUSTER = mp.ClusterSpec.simple(2)


@mp.function
def double(x):
    return mp.invoke(toy.add, x, x)


def opcodes(tfn):
    return [op.opcode for op in tfn.program.graph.ops]


def test_the_context_is_found_from_the_arguments(simulate):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.constant(4))
    assert mp.fetch(sim, double(x)) == [8, 8]
    assert mp.fetch(sim, mp.pshfl_s(x, [1], [0])) == [None, 4]


def test_a_traced_function_tells_of_itself():
    tracer = mp.TraceContext(CLUSTER)
    outside = mp.constant(tracer, 3)
    tfn = mp.trace(tracer, lambda x: mp.invoke(toy.add, x, outside), 1)
    assert [str(v.type) for v in tfn.in_vars] == ["i64[]@{0, 1}"]
    assert [str(v.type) for v in tfn.out_vars] == ["i64[]@{0, 1}"]
    assert [obj is outside for obj in tfn.capture_map] == [True]
    assert tfn.name == "<lambda>"


@pytest.mark.needs("jax", "spu")
def test_values_of_the_host_are_captured(simulate):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.put("P1", 10))
    result = mp.evaluate(sim, lambda y: mp.device()(lambda a: a + 1)(x), 1)
    assert result.device.name == "P1"
    assert mp.fetch(sim, result) == 11


Pair = collections.namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "nest",
    [
        lambda x: x,
        lambda x: (x, [x, {"a": x, "b": None}]),
        lambda x: Pair(x, (x,)),
        lambda x: (),
        lambda x: None,
        lambda x: {"z": 1, "a": np.arange(2)},
    ],
)
def test_nests_survive(simulate, mode, nest):
    import optree

    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, nest, 7, mode=mode))
    expected = optree.tree_map(lambda leaf: [leaf, leaf], nest(7))
    assert type(found) is type(expected)
    np.testing.assert_equal(found, expected)


def test_nests_of_arguments_and_keywords(simulate, mode):
    def program(pair, *, by, label):
        assert label == "text"
        return mp.invoke(toy.add, pair.left, by["x"]), pair.right

    sim = simulate(2)
    args = (Pair(np.arange(3), 1.5),)
    kwargs = {"by": {"x": [10, 20, 30]}, "label": "text"}
    left, right = mp.fetch(sim, mp.evaluate(sim, program, *args, **kwargs, mode=mode))
    np.testing.assert_array_equal(left, [[10, 21, 32]] * 2)
    assert right == [1.5, 1.5]


def test_compile_traces_once_per_kind_of_arguments(simulate):
    traced = []

    def program(x):
        traced.append(x.type)
        return x

    sim = simulate(2)
    compiled = mp.compile(program, cluster_spec=sim.cluster_spec)
    for x in (1, 2, np.arange(3), np.arange(3) + 1, 1.5):
        mp.evaluate(sim, compiled, x)
    assert [str(kind) for kind in traced] == ["i64[]@{0, 1}", "i64[3]@{0, 1}", "f64[]@{0, 1}"]


def test_compile_for_types_alone():
    kind = mp.MPType(mp.TensorType("f32", (3,)), mp.Mask(0b10))
    compiled = mp.compile(lambda x: x, kind, cluster_spec=CLUSTER)
    assert "(%0: f32[3]@{1})" in compiled.compiler_ir()


def test_what_was_given_is_not_changed_later(simulate):
    sim = simulate(2)
    x = np.arange(3)
    result = mp.evaluate(sim, lambda v: v, x)
    sealed = mp.evaluate(sim, lambda: mp.put("P0", x))
    x[:] = 9
    np.testing.assert_array_equal(mp.fetch(sim, result)[0], [0, 1, 2])
    np.testing.assert_array_equal(mp.fetch(sim, sealed), [0, 1, 2])


def test_tracing_is_per_thread():
    errors = []

    def many():
        try:
            for _ in range(50):
                tfn = mp.trace(mp.TraceContext(CLUSTER), lambda x: double(double(x)), 1)
                assert opcodes(tfn) == ["simp.pcall_static"] * 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=many) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors


def test_a_trace_inside_of_a_trace_is_its_own():
    def program(x):
        inner = mp.trace(mp.TraceContext(CLUSTER), double, 1)
        assert opcodes(inner) == ["simp.pcall_static"]
        return x

    assert opcodes(mp.trace(mp.TraceContext(CLUSTER), program, 1)) == []


def test_an_error_while_tracing_leaves_no_context_behind():
    def program(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        mp.trace(mp.TraceContext(CLUSTER), program, 1)
    with pytest.raises(TraceError, match="no context"):
        mp.cur_ctx()


def test_data_that_was_fetched_cannot_change_the_parties(simulate):
    sim = simulate(2)
    result = mp.evaluate(sim, lambda: mp.put("P0", [1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        mp.fetch(sim, result)[0] = 99
    base = np.arange(3)
    view = base[:]
    view.flags.writeable = False
    kept = mp.evaluate(sim, lambda v: v, view)
    base[:] = 9
    np.testing.assert_array_equal(mp.fetch(sim, kept)[0], [0, 1, 2])


def test_an_argument_that_can_change_is_not_compiled_in(simulate):
    class Config:
        __hash__ = None
        factor = 1

    with pytest.raises(TraceError, match="can change after it was compiled in"):
        mp.evaluate(simulate(2), lambda x, config: x, 1, Config())


class Incomparable:
    def __eq__(self, other):
        raise TypeError("incomparable")

    def __repr__(self):
        return "<incomparable>"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (lambda sim: np.arange(2), "array([0, 1])"),
        (lambda sim: np.array([], np.int64), "array([], dtype=int64)"),
        (
            lambda sim: mp.evaluate(sim, lambda: mp.put("P0", 7)),
            "<i64[] at P0; mp.fetch it to see>",
        ),
        (lambda sim: Incomparable(), "<incomparable>"),
    ],
)
def test_data_for_a_text_that_was_compiled_in_is_refused(simulate, given, shown):
    sim = simulate(2)
    tfn = mp.trace(mp.TraceContext(sim.cluster_spec), lambda x, how: x, 1, "sum")
    data = given(sim)
    with mp.record(sim) as recording, pytest.raises(TraceError) as error:
        mp.apply(sim, tfn, 1, data)
    expected = f"argument 1 of <lambda> is compiled in as 'sum', got {shown}"
    assert re.fullmatch(rf"test_functions\.py:\d+: {re.escape(expected)}", str(error.value))
    assert not recording.spans, "nothing ran to compare them"


def test_an_error_names_the_line_that_failed_not_one_that_looks_the_same(simulate):
    sim = simulate(2)
    first = lambda: mp.invoke(toy.fail_at, mp.constant(1), party=0)  # noqa: E731
    second = lambda: mp.invoke(toy.fail_at, mp.constant(1), party=0)  # noqa: E731
    lines = []
    for program in (first, second):
        with pytest.raises(mp.errors.PartyError) as error:
            mp.evaluate(sim, program)
        lines.append(int(error.value.location.rpartition(":")[2]))
    assert lines[1] == lines[0] + 1


def test_large_constants_are_let_go_of(simulate):
    import gc
    import weakref

    sim = simulate(2)
    with mp.with_ctx(sim):
        x = mp.put("P0", np.zeros(1 << 18))
    ref = weakref.ref(x.value.values[0])
    del x
    gc.collect()
    assert ref() is None


@mp.function
def add_twice(x, y):
    z = mp.invoke(toy.add, x, y)
    return mp.invoke(toy.add, z, y)


def test_a_function_given_as_an_argument_is_known_while_tracing(simulate):
    """It is Python that shapes the program, such as a loop over layers; nothing of it is left."""
    sim = simulate(2)
    program = lambda fn, x: fn(fn(x))  # noqa: E731
    found = mp.evaluate(sim, program, lambda x: mp.invoke(toy.scale, x), 3)
    assert mp.fetch(sim, found) == [12, 12]


def test_a_traced_function_is_applied_and_is_no_value(simulate):
    sim = simulate(2)
    tfn = mp.trace(mp.TraceContext(sim.cluster_spec), add_twice, 1, 2)
    assert isinstance(tfn, mp.TracedFunction)
    assert not isinstance(tfn, mp.MPObject)
    assert mp.fetch(sim, mp.apply(sim, tfn, 10, 4)) == [18, 18]


def test_a_traced_function_keeps_how_arguments_and_results_nest_and_what_it_captured():
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


def test_a_function_is_put_in_its_callers_graph():
    @mp.function
    def add_twice(x, y):
        z = mp.invoke(toy.add, x, y)
        return mp.invoke(toy.add, z, y)

    tfn = mp.trace(mp.TraceContext(CLUSTER), lambda a, b: add_twice(a, b), 1, 2)
    first, second = tfn.program.graph.ops
    assert opcodes(tfn) == ["simp.pcall_static"] * 2
    assert second.inputs == (first.outputs[0], tfn.in_vars[1])
    assert tfn.out_vars == list(second.outputs)


def test_a_function_is_traced_and_applied_at_once(simulate, mode):
    calls = []

    @mp.function
    def double(x):
        calls.append(type(x))
        return mp.invoke(toy.add, x, x)

    sim = simulate(2, mode=mode)
    with mp.with_ctx(sim):
        assert mp.fetch(sim, double(double(mp.constant(1)))) == [4, 4]
    assert calls == [mp.TraceVar] * 2  # Python runs at each call; the program is run whole


def test_functions_compose(simulate, mode):
    preprocess = mp.function(lambda x: mp.invoke(toy.scale, x))
    model = mp.function(lambda x: mp.invoke(toy.add, x, x))
    postprocess = mp.function(lambda x: {"score": x})

    @mp.function
    def my_pipeline(x):
        x = preprocess(x)
        x = model(x)
        return postprocess(x)

    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, my_pipeline, 3, mode=mode))
    assert found == {"score": [12, 12]}

"""Seed 003, section 4.1 (values tell their types) and section 7.3 (what to do, what to avoid).

The names of the tests begin with the section.
"""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core import MPType, TensorType
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)
HERE = r"chapters_4_and_7\.py:\d+"


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


# -- 4.1 the type of a value


def test_4_1_a_type_is_a_base_type_and_a_mask():
    kind = MPType(TensorType("f32", (3,)), mp.Mask(0b01))
    assert (kind.base, kind.pmask, str(kind)) == (
        TensorType(np.float32, [3]),
        mp.Mask(1),
        "f32[3]@{0}",
    )
    assert str(MPType(TensorType("i64"), None)) == "i64[]@?"


def test_4_1_traced_and_held_values_tell_the_same(simulate):
    kinds = []

    def look(x):
        kinds.append((x._type, x.mptype, x.type, x.pmask, x.shape, x.dtype, x.ndim))
        return x

    sim = simulate(2)
    look(mp.evaluate(sim, look, np.zeros((2, 3), np.float32)))
    assert kinds[0] == kinds[1]
    kind = MPType(TensorType("f32", (2, 3)), mp.Mask(0b11))
    assert kinds[0] == (kind, kind, kind, kind.pmask, (2, 3), np.float32, 2)


def test_4_1_a_mask_that_is_known_at_run_time_only_is_none(simulate):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=1)))
    assert x.pmask is None
    assert mp.fetch(sim, x) == [None, 2]


def test_4_1_inside_of_a_pcall_there_is_no_mask():
    @mp.function
    def at_a_party(x):
        assert x.type == TensorType("i64")
        with pytest.raises(TraceError, match="inside of a pcall and has no mask"):
            _ = x.pmask
        return x

    trace(lambda: mp.simp.pcall_static(0, at_a_party, mp.constant(1)))


def test_4_1_what_is_no_tensor_has_no_shape():
    table = MPType(mp.TableType((("id", "int64"),)), mp.Mask(1))
    with pytest.raises(AttributeError, match=HERE + r": table<\[\"id\", \"int64\"\]> has no shape"):
        trace(lambda t: t.shape, table)
    assert trace(lambda t: t if not hasattr(t, "shape") else None, table).out_vars


# -- 7.3 what to do


def test_7_3_good_functions_compose(simulate, mode):
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


@pytest.mark.needs("jax", "spu")
def test_7_3_good_a_builtin_function_wraps_a_protocol(simulate, mode):
    @mp.builtin_function
    def secure_aggregation(values):
        sealed = [mp.seal(v) for v in values]
        aggregated = sum(sealed)
        return mp.reveal(aggregated)

    def program():
        return secure_aggregation([mp.put("P0", 3), mp.put("P1", 4)])

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, mode=mode)) == [7, 7]
    assert [op.opcode for op in trace(program).program.graph.ops][-1] == "func.call"


def test_7_3_good_control_flow_is_explicit(simulate, mode):
    def program(pred, x):
        then_fn = lambda v: mp.invoke(toy.scale, v)  # noqa: E731
        return mp.uniform_cond(pred, then_fn, lambda v: v, x)

    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, program, True, 4, mode=mode)) == [8, 8]


@mp.simple_op("section73.my_op")
def my_op(x: TensorType) -> TensorType:
    """Only derives types."""
    return TensorType(x.dtype, x.shape)


@mp.kernel("section73.my_op")
def my_kernel(ctx, x):
    return np.asarray(x + 1)


def test_7_3_good_an_op_is_types_here_and_a_kernel_there(simulate, mode):
    sim = simulate(2)
    found = mp.evaluate(sim, lambda x: mp.invoke(my_op, x), 1, mode=mode)
    assert mp.fetch(sim, found) == [2, 2]


# -- 7.3 what to avoid, and what says so


@pytest.mark.needs("jax")
@pytest.mark.parametrize(
    "bad",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x > 0 and x,
        lambda x: not (x > 0),
        lambda x: max(x, 0),
        lambda x: 3 in [x],
    ],
)
def test_7_3_bad_python_branches_on_a_value(bad):
    message = HERE + r".*the truth of .* needs its data; for `if` use mp\.uniform_cond"
    with pytest.raises(TraceError, match=message):
        trace(mp.function(bad), 1)


def test_7_3_bad_python_loops_on_a_value():
    def bad(x):
        while x:
            x = mp.invoke(toy.scale, x)
        return x

    with pytest.raises(TraceError, match=HERE + r".*for `while` mp\.while_loop"):
        trace(mp.function(bad), True)


@pytest.mark.parametrize("use", [float, int, range, np.asarray, lambda x: [1, 2][x]])
def test_7_3_bad_data_is_read_while_tracing(use):
    with pytest.raises(TraceError, match=HERE + ".*needs its data; .*mp.fetch"):
        trace(mp.function(lambda x: use(x)), 1)


@pytest.mark.needs("jax")
def test_7_3_bad_a_plain_function_reads_data_while_it_is_compiled():
    bad = lambda x: mp.invoke(lambda v: v if v > 0 else -v, x)  # noqa: E731
    with pytest.raises(TraceError, match=HERE + r": JAX cannot trace .*jnp\.where or jax\.lax\.co"):
        trace(bad, 1)


def test_7_3_bad_a_function_that_holds_a_traced_value_is_returned():
    @mp.function
    def make_adder(x):
        return lambda y: mp.invoke(toy.add, x, y)

    with pytest.raises(TraceError, match=HERE + ".*make_adder returns a function; a traced func"):
        trace(make_adder, 1)


def test_7_3_bad_a_function_that_holds_a_traced_value_is_kept_and_called_later():
    kept = []
    trace(lambda x: kept.append(lambda y: mp.invoke(toy.add, x, y)), 1)
    with pytest.raises(TraceError, match=HERE + ".*leaked out of the function"):
        trace(lambda y: kept[0](y), 1)


def test_7_3_good_the_values_are_arguments(simulate, mode):
    add_with_context = mp.function(lambda x, y: mp.invoke(toy.add, x, y))
    sim = simulate(2)
    assert mp.fetch(sim, mp.evaluate(sim, add_with_context, 1, 2, mode=mode)) == [3, 3]

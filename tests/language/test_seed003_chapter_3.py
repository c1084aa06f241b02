"""Seed 003, chapter 3, the parts: functions, control flow, peval, ops, shuffles.

The names of the tests begin with the section. The table of 3.3 is in
``semantics/test_rmask.py``, the rules of 3.2 in ``semantics/test_control_flow.py``, those of 3.5
in ``semantics/test_shuffles.py``; here are their examples, and what else the sections say.
"""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.errors import FeConfigError, PartyError, TraceError
from mplang_core.feop import unflatten

CLUSTER = mp.ClusterSpec.simple(2)


def add(x, y):
    return mp.invoke(toy.add, x, y)


def less(x, y):
    return mp.invoke(toy.less, x, y)


def trace(program, *args, parties=2):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), program, *args)


def opcodes(tfn):
    return [op.opcode for op in tfn.program.graph.ops]


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


# -- 3.1.1 @function


def test_3_1_1_a_function_is_put_in_its_callers_graph():
    @mp.function
    def add_twice(x, y):
        z = add(x, y)
        return add(z, y)

    tfn = trace(lambda a, b: add_twice(a, b), 1, 2)
    first, second = tfn.program.graph.ops
    assert opcodes(tfn) == ["simp.pcall_static"] * 2
    assert second.inputs == (first.outputs[0], tfn.in_vars[1])
    assert tfn.out_vars == list(second.outputs)


def test_3_1_1_at_once_it_is_traced_and_applied(simulate, mode):
    calls = []

    @mp.function
    def double(x):
        calls.append(type(x))
        return add(x, x)

    sim = simulate(2, mode=mode)
    with mp.with_ctx(sim):
        assert mp.fetch(sim, double(double(mp.constant(1)))) == [4, 4]
    assert calls == [mp.TraceVar] * 2  # Python runs at each call; the program is run whole


# -- 3.1.2 @builtin_function


def test_3_1_2_a_builtin_function_is_one_node_with_several_results(simulate, mode):
    @mp.builtin_function
    def complex_crypto(x, key):
        ct = add(x, key)
        mac = less(ct, key)
        return (ct, mac)

    program = lambda data, k: complex_crypto(data, k)  # noqa: E731
    tfn = trace(program, 3, 4)
    (call,) = tfn.program.graph.ops
    assert (call.opcode, call.attrs["name"], len(call.outputs)) == (
        "func.call",
        "complex_crypto",
        2,
    )
    assert run(simulate(2), program, mode, 3, 4) == ([7, 7], [False, False])


@pytest.mark.once
def test_3_1_2_a_builtin_function_is_traced_once_per_kind_of_arguments(simulate, mode):
    calls = 0

    @mp.builtin_function
    def double(x):
        nonlocal calls
        calls += 1
        return add(x, x)

    def program(x, y):
        x, y = mp.invoke(toy.scale, x), mp.invoke(toy.scale, y)
        return double(double(x)), double(x), double(y), double(double(y))

    tfn = trace(program, 1, np.arange(2))
    assert calls == 2  # i64[] and i64[2]
    assert opcodes(tfn).count("func.call") == 6
    mp.verify(tfn.program)
    assert mp.parse(tfn.compiler_ir()).digest == tfn.program.digest
    found = run(simulate(2), program, mode, 1, np.arange(2))
    assert [part[1] for part in found[:2]] == [8, 4]
    np.testing.assert_array_equal([part[1] for part in found[2:]], [[0, 4], [0, 8]])
    assert calls == 4  # another program


def test_3_1_2_a_builtin_function_is_traced_once_at_a_host(simulate):
    calls = []

    @mp.builtin_function
    def double(x):
        calls.append(x)
        return add(x, x)

    sim = simulate(2)
    with mp.with_ctx(sim):
        found = [mp.fetch(sim, double(mp.constant(i)))[0] for i in range(3)]
    assert found == [0, 2, 4]
    assert len(calls) == 1


@pytest.mark.once
def test_3_1_2_a_builtin_function_is_traced_once_for_all_regions(simulate, mode):
    calls = []

    @mp.builtin_function
    def double(x):
        calls.append(x)
        return add(x, x)

    def program(x):
        x = mp.invoke(toy.scale, x)
        y = mp.uniform_cond(True, lambda: double(x), lambda: double(double(x)))
        limit = mp.constant(40)
        return mp.while_loop(lambda s: less(s, limit), double, y)

    assert run(simulate(2), program, mode, 3) == [48, 48]
    assert len(calls) == 1


@pytest.mark.parametrize("at_once", [False, True])
def test_3_1_2_what_is_read_from_around_is_as_it_is_at_the_call(simulate, mode, at_once):
    def helper(x):
        return mp.invoke(toy.scale, x, by=by)

    box = {}

    @mp.builtin_function
    def fn(x):
        return add(add(helper(x), outside), box["inside"])

    def program():
        nonlocal by, outside
        found = []
        for by in (2, 3):  # noqa: B007
            for outside in (mp.constant(10), mp.constant(20)):  # noqa: B007
                for box["inside"] in (mp.constant(100), mp.constant(200)):
                    found.append(fn(mp.constant(1)))
        return found

    by = outside = None
    sim = simulate(2, mode=mode)
    with mp.with_ctx(sim):
        found = program() if at_once else mp.evaluate(sim, program)
    values = [value[0] for value in mp.fetch(sim, found)]
    assert values == [112, 212, 122, 222, 113, 213, 123, 223]


def test_3_1_2_static_arguments_that_differ_are_traced_apart(simulate):
    @mp.builtin_function
    def fn(x, how):
        return mp.invoke(toy.scale, x, by=len(how))

    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, lambda x: (fn(x, "a"), fn(x, "abc"), fn(x, "b")), 5))
    assert [value[0] for value in found] == [5, 15, 5]


# -- 3.1.3 captured values


def test_3_1_3_captures_are_lifted_at_every_depth(simulate, mode):
    """A function in a loop in a function in a branch, each using values from all around it."""

    def program(flag, n):
        a = mp.constant(1)

        @mp.builtin_function
        def outer(x):
            b = add(x, a)

            def body(state):
                @mp.builtin_function
                def inner(y):
                    @mp.function
                    def at_a_party(z):
                        return mp.invoke(toy.add, z, mp.invoke(toy.add, a, b))

                    return mp.simp.pcall_static((0, 1), at_a_party, add(y, n))

                return mp.uniform_cond(flag, lambda: inner(state), lambda: add(state, b))

            return mp.while_loop(lambda s: less(s, n), body, b)

        return outer(n), outer(a)

    def directly(flag, n):
        def outer(x):
            b = s = x + 1
            while s < n:
                s = s + n + 1 + b if flag else s + b
            return s

        return outer(n), outer(1)

    sim = simulate(2)
    for flag in (True, False):
        found = run(sim, program, mode, flag, 7)
        assert [value[1] for value in found] == list(directly(flag, 7))


def test_3_1_3_the_context_of_the_arguments_is_found():
    tracer = mp.TraceContext(CLUSTER)
    x = mp.constant(tracer, 3)
    y = mp.builtin_function(lambda v: add(v, v))(x)
    assert y.ctx is tracer
    assert [op.opcode for op in tracer.graph.ops] == ["simp.constant", "func.call"]


# -- 3.2.1 uniform_cond


def test_3_2_1_a_predicate_that_all_know_is_good(simulate, mode):
    def good(x):
        pred = less(x, mp.constant(3))
        plus = lambda v: add(v, mp.constant(1))  # noqa: E731
        return mp.uniform_cond(pred, plus, lambda v: mp.invoke(toy.scale, v), x)

    sim = simulate(2)
    assert run(sim, good, mode, 2) == [3, 3]
    assert run(sim, good, mode, 5) == [10, 10]


def test_3_2_1_a_predicate_that_differs_between_parties_is_an_error(simulate, mode):
    def bad():
        pred = less(mp.simp.pcall_static((0, 1), toy.rank), mp.constant(1))
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    with pytest.raises(RuntimeError, match=r"chapter_3\.py:\d+: the parties disagree.*mp\.reveal"):
        run(simulate(2), bad, mode)


def test_3_2_1_the_mask_of_a_predicate_is_checked_while_tracing():
    bad = lambda: mp.uniform_cond(  # noqa: E731
        mp.constant(True, parties=0), lambda: mp.constant(1), lambda: mp.constant(2)
    )
    with pytest.raises(TraceError, match=r"chapter_3\.py:\d+.*held by \{0\}, but \{0, 1\}"):
        trace(bad)


def test_3_2_1_branches_match_in_type_and_mask():
    bad = lambda: mp.uniform_cond(  # noqa: E731
        True, lambda: mp.constant(1), lambda: mp.constant(1, parties=1)
    )
    with pytest.raises(TypeError, match=r"chapter_3\.py:\d+.*then gives .*else gives i64\[\]@\{1"):
        trace(bad)


def test_3_2_1_captures_of_both_branches_are_operands_of_the_one_op():
    def program(pred, x):
        outer, other = mp.constant(1), mp.constant(2)
        return mp.uniform_cond(pred, lambda v: add(v, outer), lambda v: add(v, other), x)

    cond = trace(program, True, 5).program.graph.ops[-1]
    assert cond.opcode == "simp.uniform_cond"
    assert cond.attrs["verify_uniform"] is True
    assert len(cond.inputs) == 4
    assert [len(branch.inputs) for branch in cond.regions.values()] == [3, 3]


# -- 3.2.2 while_loop


def test_3_2_2_a_loop_until_a_uniform_predicate_is_false(simulate, mode):
    def program(threshold, rate):
        cond_fn = lambda state: less(threshold, state)  # noqa: E731
        body_fn = lambda state: mp.invoke(toy.divide, state, rate)[0]  # noqa: E731
        return mp.while_loop(cond_fn, body_fn, mp.constant(1000))

    assert run(simulate(2), program, mode, 10, 3) == [4, 4]


@pytest.mark.needs("jax")
def test_3_2_2_gradient_descent_that_stops_for_all_at_once(simulate, mode):
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
def test_3_2_2_a_loop_of_each_party_for_itself_is_a_loop_of_the_engine(simulate, mode):
    import jax

    def program():
        until = lambda limit: jax.lax.while_loop(  # noqa: E731
            lambda s: s < limit, lambda s: s * 2, jax.numpy.ones_like(limit)
        )
        limits = mp.pconv([mp.constant(10, parties=0), mp.constant(100, parties=1)])
        return mp.simp.pcall_static((0, 1), until, limits)

    assert run(simulate(2), program, mode) == [16, 128]


# -- 3.2.3 what is checked when


def test_3_2_3_a_predicate_of_an_unknown_mask_is_checked_when_it_runs(simulate, mode):
    def program(everyone):
        known = mp.constant(1) if everyone else mp.constant(1, parties=0)
        pred = mp.simp.pcall_dynamic(toy.less, known, mp.constant(2))
        assert pred.pmask is None
        return mp.uniform_cond(pred, lambda: mp.constant(1), lambda: mp.constant(2))

    sim = simulate(2)
    assert run(sim, lambda: program(True), mode) == [1, 1]
    with pytest.raises(PartyError, match=r"chapter_3\.py:\d+.*predicate"):
        run(sim, lambda: program(False), mode)


def test_3_2_3_the_comparison_can_be_left_out(simulate, mode):
    """Then each party branches by its own; a program says so only where it knows better."""

    def program():
        pred = less(mp.simp.pcall_static((0, 1), toy.rank), mp.constant(1))
        one, two = lambda: mp.constant(1), lambda: mp.constant(2)
        return mp.uniform_cond(pred, one, two, verify_uniform=False)

    assert run(simulate(2), program, mode) == [1, 2]


# -- 3.3 peval; its table is in semantics/test_rmask.py


def test_3_3_peval_wraps_the_op_in_a_pcall_and_gives_values():
    def program(x, y):
        pfunc, args, out_tree = toy.divide(x, y)
        outs = mp.peval(pfunc, args, rmask=mp.Mask(0b01))
        assert [type(out) for out in outs] == [mp.TraceVar] * 2
        return unflatten(out_tree, outs)

    tfn = trace(program, 7, 2)
    (op,) = tfn.program.graph.ops
    assert (op.opcode, op.attrs["parties"]) == ("simp.pcall_static", mp.Mask(0b01))
    assert [inner.opcode for inner in op.regions["do"].ops] == ["toy.divmod"]
    assert [value.type.pmask for value in tfn.out_vars] == [mp.Mask(0b01)] * 2


def test_3_3_peval_at_once(simulate):
    sim = simulate(2)
    with mp.with_ctx(sim):
        pfunc, args, _ = toy.add(mp.constant(1), mp.constant(2))
        (out,) = mp.peval(pfunc, args, rmask=[1])
    assert mp.fetch(sim, out) == [None, 3]


def test_3_3_an_unknown_mask_stays_unknown_or_is_named_and_checked(simulate, mode):
    def program():
        x = mp.simp.pcall_dynamic(toy.scale, mp.constant(1, parties=1))
        pfunc, args, _ = toy.add(x, x)
        (anyone,) = mp.peval(pfunc, args)
        (only_1,) = mp.peval(pfunc, args, rmask=mp.Mask(0b10))
        assert (anyone.pmask, only_1.pmask) == (None, mp.Mask(0b10))
        return anyone, only_1

    assert run(simulate(2), program, mode) == ([None, 4], [None, 4])


# -- 3.4 ops


@mp.simple_op("section34.encrypt")
def encrypt(x: TensorType, key: TensorType, *, key_size: int) -> TensorType:
    """Derives types only."""
    if key.shape:
        raise TypeError("expected a scalar as the key")
    return TensorType("i64", x.shape)


@mp.kernel("section34.encrypt")
def _encrypt(ctx, x, key, *, key_size):
    return np.asarray(x ^ (key % key_size))


def test_3_4_1_an_op_is_used_by_its_name_and_seen_by_its_type():
    def program(plain, key):
        ct = mp.invoke(encrypt, plain, key, key_size=2048)
        assert str(ct.mptype.base) == "i64[3]"
        return ct

    trace(program, np.arange(3), 5)
    assert mp.registry.get("section34.encrypt") is encrypt


def test_3_4_2_an_op_gives_the_triad(simulate, mode):
    def seal(data, key):
        pfunc, mp_inputs, out_tree = encrypt(data, key, key_size=4096)
        assert isinstance(pfunc, mp.PFunction)
        assert pfunc.fn_type == "section34.encrypt"
        assert [str(kind) for kind in (*pfunc.ins_info, *pfunc.outs_info)] == [
            "i64[3]",
            "i64[]",
            "i64[3]",
        ]
        assert pfunc.attrs == {"key_size": 4096}
        assert [*map(id, mp_inputs)] == [id(data), id(key)]
        return unflatten(out_tree, mp.peval(pfunc, mp_inputs))

    found = run(simulate(2), mp.function(seal), mode, np.arange(3), 5)
    np.testing.assert_array_equal(found, [np.arange(3) ^ 5] * 2)


def test_3_4_2_values_by_position_attributes_by_keyword():
    with pytest.raises(TraceError, match=r"chapter_3\.py:\d+: section34.encrypt: it takes multi-p"):
        trace(lambda x: encrypt(x, 5, key_size=1), 1)
    with pytest.raises(TraceError, match=r"chapter_3\.py:\d+.*attributes missing: key_size"):
        trace(lambda x: encrypt(x, x), 1)
    with pytest.raises(
        TraceError, match=r"chapter_3\.py:\d+.*section34.encrypt: TraceVar is no attr"
    ):
        trace(lambda x: encrypt(x, x, key_size=x), 1)


def test_3_4_2_what_the_op_says_of_types_is_told_with_the_users_line():
    with pytest.raises(TraceError, match=r"chapter_3\.py:\d+.*expected a scalar as the key"):
        trace(lambda x: encrypt(x, x, key_size=1), np.arange(3))


def test_3_4_2_an_op_has_a_signature_that_is_written_out():
    with pytest.raises(FeConfigError, match=r"no \*args or \*\*kwargs"):

        @mp.simple_op("section34.any")
        def any_of(*args: TensorType) -> TensorType:
            """Takes anything."""
            return args[0]


def test_3_4_3_a_kernel_is_found_by_the_ops_name_alone():
    """No op knows a kernel: what runs it is asked of the table of who runs it."""
    from mplang_core.runtime import host_kernels, worker_kernels

    assert worker_kernels.get("section34.encrypt") is _encrypt
    assert host_kernels.get("section34.encrypt") is None


# -- 3.5 shuffles; their rules are in semantics/test_shuffles.py


def test_3_5_1_pshfl(simulate, mode):
    def program():
        src = mp.pconv([mp.constant(10, parties=0), mp.constant(12, parties=2)])
        return mp.pshfl(src, mp.constant(0, parties=1))

    assert run(simulate(3), program, mode) == [None, 10, None]


def test_3_5_2_pshfl_s(simulate, mode):
    def program():
        return mp.pshfl_s(
            mp.simp.pcall_static((0, 1, 2), toy.rank), pmask=mp.Mask(0b111), src_ranks=[2, 0, 1]
        )

    assert run(simulate(3), program, mode) == [2, 0, 1]


@pytest.mark.parametrize("src_ranks", [[1, 0], [4, 3, 2, 1, 0], [1, 2, 3, 4, 0], [3, 3, 0, 3, 1]])
def test_3_5_2_swaps_and_permutations_end_and_come_back(simulate, mode, src_ranks):
    """Everyone sends and receives at once, hundreds of times; nobody waits for the other."""
    size = len(src_ranks)

    def program(turns):
        x = mp.simp.pcall_static(range(size), toy.rank)
        shuffle = lambda x: mp.pshfl_s(x, range(size), src_ranks)  # noqa: E731
        body = lambda s: (add(s[0], mp.constant(1)), shuffle(s[1]))  # noqa: E731
        return mp.while_loop(lambda s: less(s[0], turns), body, (0, x))[1]

    expected = np.arange(size)
    for _ in range(100):
        expected = expected[src_ranks]
    assert run(simulate(size), program, mode, 100) == expected.tolist()


def test_3_5_3_pconv(simulate, mode):
    def program():
        return mp.pconv([mp.constant(v, parties=i) for i, v in enumerate((5, 6, 7))])

    assert run(simulate(3), program, mode) == [5, 6, 7]


def test_3_5_3_overlapping_masks_are_refused_while_tracing_or_when_it_runs(simulate, mode):
    with pytest.raises(TraceError, match=r"chapter_3\.py:\d+.*overlap in \{0\}"):
        trace(lambda: mp.pconv([mp.constant(1), mp.constant(2, parties=0)]))

    def program():
        x = mp.simp.pcall_dynamic(toy.scale, mp.constant(1))
        y = mp.simp.pcall_dynamic(toy.scale, mp.constant(2, parties=1))
        return mp.pconv([x, y])

    with pytest.raises(PartyError, match=r"party 1 failed in simp.converge at .*chapter_3\.py:\d+"):
        run(simulate(2), program, mode)

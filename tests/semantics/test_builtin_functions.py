"""Functions that are one op of a program: when they are traced, and what they read from around."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)


def add(x, y):
    return mp.invoke(toy.add, x, y)


def less(x, y):
    return mp.invoke(toy.less, x, y)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


def run(sim, program, mode, *args):
    return mp.fetch(sim, mp.evaluate(sim, program, *args, mode=mode))


def opcodes(tfn):
    return [op.opcode for op in tfn.program.graph.ops]


@mp.function
def double(x):
    return mp.invoke(toy.add, x, x)


def test_builtin_function_is_one_op_with_its_captures():
    y = None

    @mp.builtin_function
    def plus_y(x):
        return mp.invoke(toy.add, x, y)

    def program(x):
        nonlocal y
        y = mp.constant(5)
        return plus_y(x), plus_y(1)

    tfn = mp.trace(mp.TraceContext(CLUSTER), program, 1)
    assert opcodes(tfn) == ["simp.constant", "func.call", "simp.constant", "func.call"]
    mp.verify(tfn.program)
    with mp.Simulator(CLUSTER) as sim:
        for mode in ("standard", "launch"):
            result = mp.evaluate(sim, program, 1, mode=mode)
            assert mp.fetch(sim, result) == ([6, 6], [6, 6])


def test_a_builtin_function_is_one_node_with_several_results(simulate, mode):
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
def test_a_builtin_function_is_traced_once_per_kind_of_arguments(simulate, mode):
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


def test_a_builtin_function_is_traced_once_at_a_host(simulate):
    calls = 0

    @mp.builtin_function
    def double(x):
        nonlocal calls
        calls += 1
        return add(x, x)

    sim = simulate(2)
    with mp.with_ctx(sim):
        found = [mp.fetch(sim, double(mp.constant(i)))[0] for i in range(3)]
    assert found == [0, 2, 4]
    assert calls == 1


def test_a_function_that_calls_one_of_a_device_is_traced_once_at_a_host(simulate):
    on, calls = mp.device("P0"), 0

    @mp.builtin_function
    def fn(x):
        nonlocal calls
        calls += 1
        return add(x, x) if callable(on) else x

    sim = simulate(2)
    with mp.with_ctx(sim):
        for i in range(3):
            fn(mp.constant(i))
    assert calls == 1


class Settings:
    by = 2


@pytest.mark.parametrize("declare", [mp.builtin_function, mp.launch])
def test_a_function_around_one_of_mplang_reads_what_it_names_itself(simulate, declare):
    by, inner = 2, mp.function(lambda x: add(x, x))

    @declare
    @functools.wraps(inner)
    def fn(x):
        return mp.invoke(toy.scale, inner(x), by=by)

    sim = simulate(2)
    with mp.with_ctx(sim):
        assert mp.fetch(sim, fn(mp.constant(1)))[0] == 4
        by = 3
        assert mp.fetch(sim, fn(mp.constant(1)))[0] == 6


@pytest.mark.parametrize("declare", [mp.builtin_function, mp.launch, mp.function])
def test_what_a_function_at_a_host_reads_may_change_by_its_contents(simulate, declare):
    """The first trace served all calls, with numbers that were no more."""
    by, array, table, settings = 2, np.array([2]), {"by": 2}, Settings()

    @declare
    def fn(x):
        times = by, int(array[0]), table["by"], settings.by
        return [mp.invoke(toy.scale, x, by=each) for each in times]

    def found():
        return [each[0] for each in mp.fetch(sim, fn(mp.constant(1)))]

    sim = simulate(2)
    with mp.with_ctx(sim):
        assert found() == [2, 2, 2, 2]
        by = 3
        assert found() == [3, 2, 2, 2]
        array[0] = 4
        assert found() == [3, 4, 2, 2]
        table["by"] = 5
        assert found() == [3, 4, 5, 2]
        settings.by = 6
        assert found() == [3, 4, 5, 6]


@pytest.mark.once
def test_a_builtin_function_is_traced_once_for_all_regions(simulate, mode):
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
def test_what_is_read_from_around_is_as_it_is_at_the_call(simulate, mode, at_once):
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


def test_static_arguments_that_differ_are_traced_apart(simulate):
    @mp.builtin_function
    def fn(x, how):
        return mp.invoke(toy.scale, x, by=len(how))

    sim = simulate(2)
    found = mp.fetch(sim, mp.evaluate(sim, lambda x: (fn(x, "a"), fn(x, "abc"), fn(x, "b")), 5))
    assert [value[0] for value in found] == [5, 15, 5]


def test_captures_are_lifted_at_every_depth(simulate, mode):
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


@pytest.mark.needs("jax", "spu")
def test_a_builtin_function_wraps_a_protocol(simulate, mode):
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


def test_a_builtin_function_stands_among_the_parties():
    program = lambda: mp.simp.pcall_static(  # noqa: E731
        0, mp.function(lambda x: mp.builtin_function(double)(x)), mp.constant(1)
    )
    with pytest.raises(TraceError, match="stands at party level, not at local level"):
        mp.trace(mp.TraceContext(CLUSTER), program)

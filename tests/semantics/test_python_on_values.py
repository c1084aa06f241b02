"""Python that needs the data of a traced value is refused, and told what to write."""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec.simple(2)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


HERE = r"test_python_on_values\.py:\d+"


def test_a_python_if_on_a_traced_value():
    def program(x):
        if x:
            return x
        return x

    with pytest.raises(TraceError, match=HERE + ".*uniform_cond"):
        trace(program, 1)


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
def test_python_cannot_branch_on_a_value(bad):
    message = HERE + r".*the truth of .* needs its data; for `if` use mp\.uniform.*\(x < 9\)"
    with pytest.raises(TraceError, match=message):
        trace(mp.function(bad), 1)


def test_python_cannot_loop_on_a_value():
    def bad(x):
        while x:
            x = mp.invoke(toy.scale, x)
        return x

    with pytest.raises(TraceError, match=HERE + r".*for `while` mp\.while_loop"):
        trace(mp.function(bad), True)


@pytest.mark.parametrize(
    "use", [float, int, complex, range, np.asarray, np.sin, lambda x: [1, 2][x]]
)
def test_the_data_of_a_traced_value_is_not_there(use):
    with pytest.raises(TraceError, match=HERE + ".*needs its data; .*mp.fetch"):
        trace(mp.function(lambda x: use(x)), 1)


@pytest.mark.needs("jax")
def test_a_plain_function_cannot_read_data_while_it_is_compiled():
    bad = lambda x: mp.invoke(lambda v: v if v > 0 else -v, x)  # noqa: E731
    with pytest.raises(TraceError, match=HERE + r": JAX cannot trace .*jnp\.where or jax\.lax\.co"):
        trace(bad, 1)


def test_a_value_cannot_be_called():
    with pytest.raises(TypeError, match="not callable"):
        mp.trace(mp.TraceContext(CLUSTER), lambda f, x: f(x), 1, 2)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: (1, f), lambda f: {"fn": [f]}])
@pytest.mark.parametrize("kind", [lambda fn: fn, mp.function])
def test_a_function_over_a_traced_value_does_not_come_out(kind, wrap):
    @kind
    def make_adder(x):
        return wrap(lambda y: mp.invoke(toy.add, x, y))

    with pytest.raises(
        TraceError, match=r"test_python_on_values\.py:\d+: make_adder returns a function; a tr"
    ):
        mp.trace(mp.TraceContext(CLUSTER), make_adder, 1)


def test_a_function_over_a_traced_value_is_not_called_later():
    kept = []
    trace(lambda x: kept.append(lambda y: mp.invoke(toy.add, x, y)), 1)
    with pytest.raises(TraceError, match=HERE + ".*leaked out of the function"):
        trace(lambda y: kept[0](y), 1)


def test_a_traced_value_that_leaks_out(simulate):
    leaked = []

    def program(x):
        leaked.append(x)
        return x

    sim = simulate(2)
    mp.evaluate(sim, program, 1)
    with pytest.raises(TraceError, match="leaked out of the function"):
        trace(lambda: mp.invoke(toy.scale, leaked[0]))
    with pytest.raises(TraceError, match="evaluate it first"):
        mp.fetch(sim, leaked[0])
    with pytest.raises(TraceError):
        mp.evaluate(sim, program, leaked[0])


def test_a_traced_value_that_leaks_out_of_a_branch():
    def program(flag):
        leaked = []
        mp.uniform_cond(flag, lambda: leaked.append(mp.constant(1)), lambda: None)
        return leaked[0]

    with pytest.raises(TraceError, match="leaked out"):
        trace(program, True)


@pytest.mark.parametrize("result", ["text", object()])
def test_something_else_returned(result):
    with pytest.raises(TraceError, match="a traced function returns multi-party values"):
        trace(lambda: result)

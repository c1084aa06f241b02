"""A loop whose condition is secret is refused at its line; its remedy runs."""

from __future__ import annotations

import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spu.experimental import reveal

import mplang_core as mp

X = np.float32([8, 1, 5])


def while_large(x):
    return jax.lax.while_loop(lambda x: jnp.max(x) > 3, lambda x: x - 1, x)  # the loop


def until_revealed(x):
    def again(carry):
        return carry[1] > 3

    def step(carry):
        x = carry[0] - 1
        return x, reveal(jnp.max(x))

    return jax.lax.while_loop(again, step, (x, reveal(jnp.max(x))))[0]  # the loop


def turns_of_each(x):
    def turned(n):
        return jax.lax.fori_loop(0, n.astype(int), lambda i, x: x + i, n)  # the loop

    return jax.lax.map(turned, x)


def behind_a_public_loop(x):
    x = jax.lax.fori_loop(0, 3, lambda i, x: x + i, x)
    once = jax.jit(lambda x: jax.lax.while_loop(lambda x: x[0] > 3, lambda x: x - 1, x))  # the loop
    return once(x)


FUNCTIONS = [while_large, until_revealed, turns_of_each, behind_a_public_loop]


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        yield sim


def refused(sim, fn):
    def program():
        return mp.device("SP0")(fn)(mp.put("P0", X))

    with pytest.raises(mp.errors.TraceError, match="condition of a loop depends on secrets") as got:
        mp.evaluate(sim, program)
    return str(got.value)


def line_of_the_loop(fn):
    lines, first = inspect.getsourcelines(fn)
    return next(first + i for i, line in enumerate(lines) if "# the loop" in line)


@pytest.mark.parametrize("wrap", [lambda fn: fn, jax.jit, lambda fn: lambda x: jax.jit(fn)(x)])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_the_line_is_that_of_the_loop(sim, fn, wrap):
    message = refused(sim, wrap(fn))
    assert message.startswith(f"test_secret_loops.py:{line_of_the_loop(fn)}: ")
    assert "spu.experimental.reveal discloses nothing" in message


def test_in_a_library_the_line_is_that_of_the_call(sim, tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "fitting_of_others.py").write_text(
        f"import jax, jax.numpy as jnp\n{inspect.getsource(while_large)}"
    )
    monkeypatch.syspath_prepend(folder)
    library = importlib.import_module("fitting_of_others")

    def fitted(x):
        return library.while_large(x) + 1  # the loop

    assert refused(sim, fitted).startswith(f"test_secret_loops.py:{line_of_the_loop(fitted)}: ")


def test_a_condition_revealed_outside_of_the_function_stops_the_loop(sim):
    """What the message says to write."""

    def again(x):
        return jnp.max(x) > 3

    def step(x):
        return x - 1

    def program():
        x = mp.device("SP0")(lambda x: x)(mp.put("P0", X))
        x = mp.while_loop(
            lambda x: mp.reveal(mp.device("SP0")(again)(x)), mp.device("SP0")(step), x
        )
        return mp.reveal(x, to="P0")

    found = mp.fetch(sim, mp.evaluate(sim, program))
    np.testing.assert_allclose(found, [3, -4, 0], atol=1e-3)

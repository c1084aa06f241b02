"""Operands that decide how often a loop of a module turns, or which branch is taken."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from mplang_jax.frontend import jax_compile_from_data
from mplang_stablehlo.deciding import deciding_operands

X, N = np.ones(8), np.int64(3)


def deciding(fn, *args):
    return deciding_operands(jax_compile_from_data(fn, *(args or (X, N))).pfunc.attrs["code"])


FIXED = {
    "for": lambda x, n: lax.fori_loop(0, 100, lambda i, a: a * 1.1 + n, x),
    "scan": lambda x, n: lax.scan(lambda a, b: (a + b, a), 0.0, x),
    "sort": lambda x, n: jnp.searchsorted(jnp.sort(x), x) + jnp.argsort(x),
    "random": lambda x, n: jax.random.normal(jax.random.key(n), (3,)),
    "where": lambda x, n: jnp.where(x > n, x, jnp.sin(x)),
    "inverse": lambda x, n: jnp.linalg.inv(jnp.outer(x, x) + jnp.eye(8)),
}
DECIDED = {
    "for": (lambda x, n: lax.fori_loop(0, n, lambda i, a: a * 1.1, x), (1,)),
    "while": (lambda x, n: lax.while_loop(lambda v: v[0] < 9, lambda v: v * 2, x), (0,)),
    "both": (lambda x, n: lax.while_loop(lambda v: v[0] < n, lambda v: v * 2, x), (0, 1)),
    "later": (
        lambda x, n: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[1], s[2], s[2] + x[0]), (0.0, 0.0, 0.0)
        ),
        (0,),
    ),
    "branch": (
        lambda x, n: lax.cond(
            n > 0, lambda x: lax.fori_loop(0, 99, lambda i, a: a * 2, x), lambda x: x, x
        ),
        (1,),
    ),
    "switch": (lambda x, n: lax.switch(n, [jnp.sin, jnp.cos, jnp.tan], x), (1,)),
    "called": (lambda x, n: jax.jit(lambda y: lax.fori_loop(0, y, lambda i, a: a + 1, 0))(n), (1,)),
    "batched": (
        lambda x, n: jax.vmap(lambda v: lax.while_loop(lambda s: s < v, jnp.exp, v))(x),
        (0,),
    ),
    "drawn": (lambda x, n: jax.random.poisson(jax.random.key(0), x), (0,)),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_loop_of_fixed_turns_is_decided_by_nothing(name):
    assert deciding(FIXED[name]) == ()


@pytest.mark.parametrize("name", DECIDED)
def test_conditions_and_branches_are_decided_by_what_flows_into_them(name):
    fn, expected = DECIDED[name]
    assert deciding(fn) == expected

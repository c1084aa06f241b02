"""A literal that is not a multiple of the smallest step is compared in a loop: no false alarm."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

X = np.float64([0.1, 0.3, 0.5])
ZEROS = np.zeros(3)


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        yield sim


def shared(sim, fn, x):
    with mp.with_ctx(sim):
        return mp.fetch(sim, mp.reveal(mp.device("SP0")(fn)(mp.put("P0", x)), to="P0"))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + (x >= 0.3), ZEROS),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + (x == -0.3) + (x == 0.3), ZEROS),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + (x >= jnp.array(X)), ZEROS),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: (s[0] + (x >= s[1]), s[1]), (ZEROS, 0.3))[0],
        lambda x: jax.lax.map(lambda v: jnp.where(v >= 0.3, 1.0, 0.0), x),
        lambda x: jax.lax.scan(lambda c, v: (c, v >= 0.3), 0.0, x)[1],
    ],
    ids=["literal", "negative", "array", "carried", "map", "scan"],
)
def test_what_is_right_is_no_finding(sim, fn):
    for x in (X, -X):
        assert shared(sim, fn, x).tolist() == fn(x).tolist()  # a warning would be an error


def test_what_is_wrong_in_a_loop_is_still_told(sim):
    def lost(x):  # 1e-7² is 1e-14, which is below the smallest step
        return jax.lax.fori_loop(0, 3, lambda i, s: s + (x * x > 0), ZEROS)

    with pytest.warns(PrecisionWarning, match="where float64 gives"):
        assert shared(sim, lost, X * 1e-6).tolist() == [0, 0, 0]

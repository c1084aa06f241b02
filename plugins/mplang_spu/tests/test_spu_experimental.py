"""Functions of :mod:`spu.experimental`, which programs for libspu's own simulator use."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spu.experimental import drop_cached_var, make_cached_var

import mplang_core as mp

X = np.float32([[1, 2], [3, 4]])


def twice(x):
    kept = make_cached_var(x)
    y = kept @ kept
    return drop_cached_var(y, kept) + drop_cached_var(kept, y)


def trained(x):
    """Descend along a gradient through a hint, in a loop."""

    def step(w, _):
        return w - 0.1 * jax.grad(lambda w: jnp.sum((make_cached_var(x) @ w - 1) ** 2) / 2)(w), 0.0

    return jax.lax.scan(step, jnp.zeros(2, jnp.float32), None, 3)[0]


def by_rows(x):
    return jax.vmap(lambda row: make_cached_var(row) * 2)(x)


def _trained_plainly():
    w = np.zeros(2)
    for _ in range(3):
        w = w - 0.1 * X.T @ (X @ w - 1)
    return w


PLAIN = {twice: X @ X + X, trained: _trained_plainly(), by_rows: X * 2}


@pytest.mark.parametrize("device", ["P0", "SP0"])
@pytest.mark.parametrize("fn", PLAIN, ids=lambda fn: fn.__name__)
def test_a_hint_to_keep_what_was_computed_changes_no_value(device, fn):
    with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        found = mp.evaluate(sim, lambda: mp.reveal(mp.device(device)(fn)(mp.put("P0", X)), to="P0"))
        np.testing.assert_allclose(mp.fetch(sim, found), PLAIN[fn], rtol=1e-3, atol=1e-3)


def test_an_error_behind_a_hint_names_its_line():
    def fails(x):
        kept = make_cached_var(x)
        return jnp.fft.fft(kept)  # this line

    with (
        mp.Simulator(mp.ClusterSpec.simple(3)) as sim,
        pytest.raises(mp.errors.TraceError, match=r"test_spu_experimental.py:\d+: .*fft"),
    ):
        mp.evaluate(sim, lambda: mp.device("SP0")(fails)(mp.put("P0", X)))

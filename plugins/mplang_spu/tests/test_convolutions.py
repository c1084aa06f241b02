"""Convolutions with a precision, which StableHLO writes as an attribute of its own."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax

import mplang_core as mp

X = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
CASES = {
    "convolution": lambda x: lax.conv(x, x[..., :3], (1,), "SAME", precision="highest"),
    "toeplitz": lambda x: jax.scipy.linalg.toeplitz(x[0, 0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", ["P0", "SP0"])
def test_a_convolution_with_a_precision_runs(simulate, name, device):
    """It was refused: "the code has aliases"."""
    sim = simulate(3)

    def program(x):
        found = mp.device(device)(CASES[name])(x)
        return found if device == "P0" else mp.reveal(found, to="P0")

    with mp.with_ctx(sim):
        x = mp.put("P0", X)
    found = mp.fetch(sim, mp.evaluate(sim, program, x))
    np.testing.assert_allclose(found, CASES[name](X), atol=1e-6)

"""Generator of random functions: its NumPy references equal JAX's results in float64."""

from __future__ import annotations

import jax
import numpy as np
from functions import functions
from hypothesis import given, settings


@settings(derandomize=True)  # where results jump, the last bit of a sum decides
@given(functions())
def test_jax_computes_the_reference(function):
    wide = {"f": np.float64, "i": np.int64}
    with jax.enable_x64(True):
        found = jax.tree.leaves(
            function.fn(*[value.astype(wide[value.dtype.kind]) for value in function.args])
        )
    for value, expected in zip(found, function.reference, strict=True):
        assert value.dtype.kind == expected.dtype.kind
        size = max(1.0, np.abs(expected.astype(float)).max())
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6 * size)


@given(functions(steps=False))
def test_arguments_are_within_their_ranges(function):
    with jax.enable_x64(function.x64):
        jax.eval_shape(function.fn, *function.args)
    for argument in function.arguments:
        low, high = argument.range
        assert argument.value.min() >= np.float32(low)
        assert argument.value.max() <= np.float32(high)

"""What errors of SPU say to write instead runs, and is right."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import spu_runner

X = np.float32([1, -2, 8, 3, 0.5])


def test_a_fourier_transform_by_its_matrix_is_that_of_numpy():
    def real_part(x):
        n = x.size
        i = jnp.arange(n)
        return jnp.cos(2 * jnp.pi / n * jnp.outer(i, i)) @ x

    np.testing.assert_allclose(spu_runner.run(real_part, X), np.fft.fft(X).real, atol=1e-4)


def test_a_key_of_threefry_draws_as_it_does_elsewhere():
    def drawn(seed, x):
        return x + jax.random.bits(jax.random.key(seed, impl="threefry2x32"), (5,)).astype("int64")

    with jax.enable_x64(True):
        x = np.int64([1, -2, 8, 3, 5])
        expected = drawn(7, x)
    np.testing.assert_array_equal(spu_runner.run(lambda x: drawn(7, x), x), expected)

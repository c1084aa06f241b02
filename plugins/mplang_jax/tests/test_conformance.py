"""Conformance of ``mplang_jax`` with the kit for frontends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from mplang_testing import FeopSuite, KernelSuite, PluginSuite, Sample

import mplang_core as mp

X = np.float32([3, 1, 2])
A = np.random.default_rng(0).normal(size=(3, 3))
CLOSED_OVER = np.arange(3, dtype=np.float32)


@jax.jit
def many(x, nest):
    return {"sorted": jnp.sort(x), "rest": [nest["a"] @ nest["a"].T, (nest["b"] > 0).sum()]}


SAMPLES = (
    Sample("jax.compile", lambda x: x * 2, X, expect=lambda y: (y == X * 2).all()),
    Sample("jax.compile", many, X, {"b": np.int8([1, -1]), "a": A}, name="nests"),
    Sample("jax.compile", lambda x, by: x + CLOSED_OVER * by, X, 2.5, name="closed-over"),
    Sample("jax.compile", lambda x: jnp.linalg.cholesky(x @ x.T), A, name="lapack"),
    Sample("jax.compile", lambda x: jax.random.normal(jax.random.key(7), (4,)) + x, X[0]),
    Sample("jax.compile", lambda x: x[:0], np.int64([1]), name="empty"),
    Sample("jax.compile", lambda: jnp.float32(7), parties=3, name="no-operand"),
)


class TestFeops(FeopSuite):
    family = "jax"
    claims_all = True
    samples = (*SAMPLES, Sample("jax.compile", jnp.dot, *[mp.TensorType("f64", (2, 2))] * 2))


class TestKernels(KernelSuite):
    family = "jax"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-jax"
    heavy = ("jax", "jaxlib")

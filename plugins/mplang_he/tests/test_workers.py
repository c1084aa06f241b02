"""On workers the library runs in a process of its own at each party, and gives the same numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from he_values import cluster

import mplang_core as mp

pytestmark = pytest.mark.needs("http", "worker")

X = np.array([[3, -4, 5], [100, 0, -128]], np.int8)


def program():
    whole = mp.device("H")(lambda x: x.astype("int32") ** 2)(mp.put("C", X))
    x, w = mp.put("C", X / 128, range=(-1, 1)), mp.put("V", [0.5, 0.0, -2.0], range=(-2, 2))
    deep = mp.device("H")(lambda x: jnp.concatenate([x, x**2, x**4], axis=1))(x)
    made = mp.device("H")(lambda x, w: x @ w)(x, w)
    return [mp.reveal(each, to="C") for each in (whole, made, deep)]


def test_workers_give_what_a_simulator_gives():
    from mplang_http import LocalCluster

    with LocalCluster(["clinic", "vendor", "lab"]) as workers:
        spec = mp.ClusterSpec(workers.spec.nodes, cluster().devices)
        with mp.connect("http", spec) as host:
            found = [mp.fetch(host, mp.evaluate(host, program)) for _ in range(2)]
    for whole, real, deep in found:
        assert whole.tolist() == (X.astype(int) ** 2).tolist()
        x = X / 128
        np.testing.assert_allclose(deep, np.hstack([x, x**2, x**4]), atol=1e-5)
        np.testing.assert_allclose(real, X / 128 @ [0.5, 0.0, -2.0], atol=1e-5)

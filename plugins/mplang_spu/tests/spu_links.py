"""Clusters and a program on SPU, and the links that its parties keep."""

from __future__ import annotations

import contextlib
import random
import socket
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np

import mplang_core as mp

PROTOCOLS = [(2, "SEMI2K"), (3, "ABY3"), (2, "CHEETAH")]


X = np.float32([3, -1, 4, 1])


def cluster(parties, devices=None, **config):
    ppu = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    spu = devices or {"SP0": {"kind": "SPU", "members": list(range(parties)), "config": config}}
    return mp.ClusterSpec.from_dict({"nodes": [{}] * parties, "devices": {**ppu, **spu}})


def device(members, protocol="SEMI2K"):
    return {"kind": "SPU", "members": members, "config": {"protocol": protocol}}


def addresses(count):
    """Return free ports outside of the ephemeral range: BRPC ends the process at a taken one."""
    found = []
    for port in random.sample(range(15_000, 32_000), 1000):
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            found.append(f"127.0.0.1:{port}")
            if len(found) == count:
                break
    return found


def program():
    y = mp.device("SP0")(lambda x: x * 2 + 1)(mp.seal(X))
    z = mp.device("SP0")(lambda y: (y > 4, jnp.argmax(y)))(y)
    return mp.reveal(y), mp.reveal(z[0]), mp.reveal(z[1])


def check(sim, mode="launch"):
    results = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    for per_party, expected in zip(results, (X * 2 + 1, X * 2 + 1 > 4, 2), strict=True):
        for found in per_party:
            np.testing.assert_allclose(found, expected, atol=1e-3)


def links(sim):
    """Return the names of the links that each party keeps."""
    return [[e.name for e in worker.resources.values()] for worker in sim._parties.workers]


def at_all(parties, job):
    """Run a job at each party, in threads."""
    with ThreadPoolExecutor(parties) as pool:
        return list(pool.map(job, range(parties)))


@mp.simple_op("outside.fails")
def fails(x: mp.TensorType) -> mp.TensorType:
    """Raise."""
    return x


@mp.kernel("outside.fails")
def _fails(ctx, x):
    raise ValueError("no")

"""Clusters and a program on SPU, and the links that its parties keep."""

from __future__ import annotations

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


_reserved = []


def addresses(count):
    """Return ports that only this process is given: BRPC ends the process at a taken one.

    They are bound until it ends, but not listened on, so that BRPC can.
    """
    found = []
    for _ in range(count):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # only now: nobody else has it
        _reserved.append(sock)
        found.append(f"127.0.0.1:{sock.getsockname()[1]}")
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

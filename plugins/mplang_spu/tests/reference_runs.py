"""Functions on SPU, run by a simulator that checks their numbers."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

COARSE = {"protocol": "SEMI2K", "field": "FM64", "fxp_fraction_bits": 18}
FINE = {"protocol": "SEMI2K", "field": "FM128", "fxp_fraction_bits": 40}


def cluster(parties, config):
    names = [f"n{i}" for i in range(parties)]
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    spu = {"kind": "SPU", "members": names, "config": config}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": n} for n in names], "devices": {**devices, "SP0": spu}}
    )


def secure(fn, *args, parties=2, config=COARSE, times=1, notes=False, **options):
    """Run a function on SPU; return the first party's result, and the warnings.

    Warnings about constants while tracing are left out, unless ``notes`` is true.
    """
    with mp.Simulator(cluster(parties, config), timeout=DEADLINE, **options) as sim:

        def program():
            values = [mp.put(f"P{i % parties}", arg) for i, arg in enumerate(args)]
            return mp.reveal(mp.device("SP0")(fn)(*values))

        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            for _ in range(times):
                result = mp.fetch(sim, mp.evaluate(sim, program))[0]
    told = [each for each in shown if each.category is PrecisionWarning]
    return result, [x for x in told if notes or not str(x.message).startswith("the constant")]


def line_after(fn, offset):
    return fn.__code__.co_firstlineno + offset


def f32(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


FULL = {"field": "FM128"}


def root(x):
    """Helper that contains the wrong line."""
    x = jnp.abs(x)
    return jnp.sqrt(x)

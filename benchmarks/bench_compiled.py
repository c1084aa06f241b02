"""What a hundred functions of different ops take to trace, compile and run once, in new processes.

CPU milliseconds a function: without kept code, in the process that keeps it, and in the next one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import mplang_core as mp

ONE = (
    jnp.sin, jnp.exp, jnp.tanh, jnp.abs, jnp.sqrt, jnp.square, jnp.negative, jnp.cos, jnp.floor,
    jnp.log1p,
)  # fmt: skip
TWO = (
    jnp.add, jnp.multiply, jnp.maximum, jnp.subtract, jnp.minimum, jnp.arctan2, jnp.power,
    jnp.hypot, jnp.divide, jnp.greater,
)  # fmt: skip
X = np.linspace(0.1, 2, 30, dtype=np.float32)


def composed(one, two):
    return lambda x, y: two(one(x), y)


FUNCTIONS = [composed(one, two) for one in ONE for two in TWO]


def measure(mode: str, device: str) -> None:
    """Print the milliseconds of tracing, and of the first run, of each function."""

    def program(x):
        x = mp.put(device, x)
        return [mp.device(device)(fn)(x, x) for fn in FUNCTIONS]

    cluster = mp.ClusterSpec.simple(3)
    with mp.Simulator(cluster, mode=mode) as sim:
        first = mp.device(device)(lambda x: x * 7 + 1)
        mp.evaluate(sim, lambda x: first(mp.put(device, x)), X)  # imports engines
        begin = time.process_time()
        compiled = mp.compile(program, X, cluster_spec=cluster)
        traced = time.process_time()
        mp.evaluate(sim, compiled, X)
        end = time.process_time()
    print((traced - begin) / len(FUNCTIONS) * 1e3, (end - traced) / len(FUNCTIONS) * 1e3)


def main() -> None:
    table = Table("device, mode", "kept code", "trace", "compile and run", "all", title="CPU ms")
    for device in ("P0", "SP0"):
        for mode in ("launch", "standard"):
            with tempfile.TemporaryDirectory() as folder:
                kept = {"off": "off", "written": f"{folder}/code", "read": f"{folder}/code"}
                for name, setting in kept.items():
                    environment = {**os.environ, "MPLANG_COMPILED_CODE": setting}
                    command = [sys.executable, "-W", "ignore", __file__, mode, device]
                    said = subprocess.check_output(command, env=environment, text=True)
                    trace, rest = map(float, said.split()[-2:])
                    times = (f"{each:.1f}" for each in (trace, rest, trace + rest))
                    table.add_row(f"{device}, {mode}", name, *times)
    Console().print(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(*sys.argv[1:])
    else:
        main()

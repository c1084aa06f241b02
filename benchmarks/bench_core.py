"""What the core costs: tracing, text and bytes, and an op in the simulator.

Times are medians in microseconds; on a noisy machine compare the ratios of one run. The
yardstick of each ratio is a call of a small NumPy function in the same run.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.ir import digest, from_bytes, parse, print_program, to_bytes

CHAIN = 200


@mp.simple_op("bench.step")
def step(x: mp.TensorType) -> mp.TensorType:
    """Adds one."""
    return x


@mp.kernel("bench.step")
def _step(ctx, x):
    return x + np.int64(1)


def chain(x):
    for _ in range(CHAIN):
        x = mp.invoke(step, x)
    return x


def jax_chain(fn):
    def program(x):
        for _ in range(CHAIN):
            x = mp.invoke(fn, x)
        return x

    return program


def micros(run, per: int = 1, repeat: int = 7) -> float:
    """Return the median time of a call, divided by what it does."""
    run()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / per * 1e6


def main() -> None:
    cluster = mp.ClusterSpec.simple(2)
    yardstick = micros(lambda: [np.add(i, 1) for i in range(1000)], 1000)
    table = Table("what", "µs", "× a NumPy call", title="mplang-core")

    def row(what: str, value: float) -> None:
        table.add_row(what, f"{value:.1f}", f"{value / yardstick:.0f}")

    row("a NumPy call", yardstick)
    trace = lambda fn: mp.trace(mp.TraceContext(cluster), fn, 0)  # noqa: E731
    row("trace one pcall", micros(lambda: trace(chain), CHAIN))
    plus_one = lambda x: x + 1  # noqa: E731
    row("trace one call of a JAX function", micros(lambda: trace(jax_chain(plus_one)), CHAIN, 3))
    program = trace(chain).program
    text, data = print_program(program), to_bytes(program)
    row("print, per pcall", micros(lambda: print_program(program), CHAIN))
    row("parse text, per pcall", micros(lambda: parse(text), CHAIN))
    row("write bytes, per pcall", micros(lambda: to_bytes(program), CHAIN))
    row("read bytes, per pcall", micros(lambda: from_bytes(data), CHAIN))
    row("digest, per pcall", micros(lambda: digest(program), CHAIN))
    row("verify, per pcall", micros(lambda: mp.verify(program), CHAIN))
    for parties in (2, 4, 8):
        with mp.Simulator(mp.ClusterSpec.simple(parties)) as sim:
            compiled = mp.compile(chain, 0, cluster_spec=sim.cluster_spec)
            for mode in ("standard", "launch"):
                run = lambda: mp.evaluate(sim, compiled, 0, mode=mode)  # noqa: B023, E731
                row(f"run one pcall, {mode}, {parties} parties", micros(run, CHAIN))
    Console().print(table)


if __name__ == "__main__":
    main()

"""What the core costs: tracing, text and bytes, and an op in the simulator.

Times are medians in microseconds. Machines are noisy, so the yardstick is a call of a small NumPy
function in the same run. Beside it stands what the public mplang (nightly 0.1.dev343) took on a
like machine, and how many times less that is here.
"""

from __future__ import annotations

import statistics
import time

import jax
import numpy as np
from mplang_cli.text import parse
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.ir import digest, from_bytes, print_program, to_bytes

CHAIN = 1000
PEER = {("standard", 2): 603, ("launch", 2): 85, ("standard", 16): 4_400, ("launch", 16): 770}


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


def jax_chain(fn, length=CHAIN):
    def program(x):
        for _ in range(length):
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
    table = Table("what", "µs", "× a NumPy call", "peer µs", "less by", title="mplang-core")

    def row(what: str, value: float, peer: float | None = None) -> None:
        compared = ("", "") if peer is None else (f"{peer:,.0f}", f"{peer / value:.1f}×")
        table.add_row(what, f"{value:.1f}", f"{value / yardstick:.0f}", *compared)

    row("a NumPy call", yardstick)
    trace = lambda fn: mp.trace(mp.TraceContext(cluster), fn, 0)  # noqa: E731
    row("trace one pcall", micros(lambda: trace(chain), CHAIN, 3), 110)
    jitted = jax.jit(lambda x: x + 1)
    again = micros(lambda: trace(jax_chain(jitted)), CHAIN, 3)
    row("trace one call of a jitted function, second to thousandth", again, 27_000)
    new = lambda: trace(jax_chain(lambda x: x + 1, 10))  # noqa: E731
    row("trace one call of a plain function", micros(new, 10, 3), 27_000)
    program = trace(chain).program
    text, data = print_program(program), to_bytes(program)
    row("print, per pcall", micros(lambda: print_program(program), CHAIN))
    row("parse text, per pcall", micros(lambda: parse(text), CHAIN))
    row("write bytes, per pcall", micros(lambda: to_bytes(program), CHAIN), 119)
    row("read bytes, per pcall", micros(lambda: from_bytes(data), CHAIN), 150)
    row("digest, per pcall", micros(lambda: digest(program), CHAIN))
    row("verify, per pcall", micros(lambda: mp.verify(program), CHAIN))
    for parties in (2, 4, 8, 16):
        with mp.Simulator(mp.ClusterSpec.simple(parties)) as sim:
            compiled = mp.compile(chain, 0, cluster_spec=sim.cluster_spec)
            for mode in ("standard", "launch"):
                run = lambda: mp.evaluate(sim, compiled, 0, mode=mode)  # noqa: B023, E731
                took = micros(run, CHAIN, 3)
                row(f"run one pcall, {mode}, {parties} parties", took, PEER.get((mode, parties)))
                row("  per party", took / parties)
    Console().print(table)


if __name__ == "__main__":
    main()

"""What tracing a call costs, the first time and again, and a loop of training steps.

Times are medians in microseconds, beside that of a small NumPy call in the same run. The public
mplang (nightly 0.1.dev343) took 27 ms per call on a like machine, the first time and again.
"""

from __future__ import annotations

import statistics
import time

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import mplang_core as mp

CALLS = 1000
STEPS = 200
PEER = 27_000.0
CLUSTER = mp.ClusterSpec.simple(2)
PEOPLE = mp.MPType(mp.TableType((("age", "int64"), ("pay", "double"))), mp.Mask.of(0))
X = np.float32([1, 2, 3])


def plain(x):
    return x * 2.0 + 1.0


def calls(device, fn, count=CALLS):
    def program(x):
        x = mp.put(device, x)
        for _ in range(count):
            x = mp.device(device)(fn())(x)
        return x

    return program


def adults(people):
    for _ in range(CALLS // 10):
        people = mp.device("P0")(lambda t: t.filter(t.age > 17))(people)
    return people


def training(x, y):
    """Two hundred steps of logistic regression on shares, in a loop of Python."""
    x, y, w = mp.seal((x, y, np.zeros(16, np.float32)))
    for _ in range(STEPS):
        rate = 0.1

        def step(x, y, w):
            return w - rate * x.T @ (jax.nn.sigmoid(x @ w) - y) / len(y)  # noqa: B023

        w = mp.device("SP0")(step)(x, y, w)
    return w


def seconds(program, *args, repeat=5) -> float:
    """Return the median time of a trace."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        mp.compile(program, *args, cluster_spec=CLUSTER)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    table = Table("trace", "µs", "× a NumPy call", "peer µs", "less by", title="tracing")
    begin = time.perf_counter()
    for i in range(100_000):
        np.add(i, 1)
    yardstick = (time.perf_counter() - begin) / 100_000 * 1e6

    def row(what: str, took: float, peer: float | None = PEER) -> None:
        compared = ("", "") if peer is None else (f"{peer:,.0f}", f"{peer / took:.1f}×")
        table.add_row(what, f"{took:,.1f}", f"{took / yardstick:,.0f}", *compared)

    row("a NumPy call", yardstick, None)
    for device in ("P0", "SP0"):
        seconds(calls(device, lambda: plain, 1), X, repeat=1)  # imports engines
        first = [
            seconds(calls(device, lambda i=i: lambda x: x + float(i), 1), X, repeat=1)
            for i in range(5)
        ]
        row(f"a plain function on {device}, first call", statistics.median(first) * 1e6)
        again = seconds(calls(device, lambda: plain), X) / CALLS
        row(f"a plain function on {device}, second to thousandth call", again * 1e6)
        fresh = seconds(calls(device, lambda: lambda x: x * 3.0), X) / CALLS
        row(f"a fresh lambda of the same code on {device}", fresh * 1e6)
    jitted = jax.jit(plain)
    row("a jitted function on P0", seconds(calls("P0", lambda: jitted), X) / CALLS * 1e6)
    seconds(adults, PEOPLE, repeat=1)
    row("a fresh lambda of tables on P0", seconds(adults, PEOPLE) / CALLS * 10 * 1e6, None)
    data = np.ones((1000, 16), np.float32), np.ones(1000, np.float32)
    row(f"{STEPS} training steps on SP0, in all", seconds(training, *data, repeat=1) * 1e6, None)
    Console().print(table)


if __name__ == "__main__":
    main()

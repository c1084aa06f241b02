"""Whether costs are flat: 2 to 32 parties, 1,000 to 100,000 ops, values of 1 MB to 4 GB.

The first two tables are of the simulator, in launch mode: a chain of additions, each followed by a
message to the next party of the ring, and a chain without messages. Times are CPU microseconds per
op and party, of the second launch; what comes before the first op is all of the first launch but
that. Memory is what the process kept beside it, per op, at its peak.

The third table is of values that are put at a worker, moved to another one, and fetched from it,
with mutual TLS; memory is what each process needed at its peak, beyond what it had, as a multiple
of the value: an engine keeps the value itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
from mplang_http import LocalCluster
from peaks import Peaks
from rich.console import Console
from rich.table import Table

import mplang_core as mp

PARTIES = (2, 4, 8, 16, 32)
LENGTHS = (1_000, 10_000, 100_000)
MANY = 100_000  # ops and parties, as a product, that one row has at most
SIZES = (1, 16, 256, 1024, 4096)  # MB
MB = 1 << 20
ENGINE = "mplang-engine"  # name of its process


@mp.simple_op("bench.sizes_step")
def step(x: mp.TensorType) -> mp.TensorType:
    """Adds one."""
    return x


@mp.kernel("bench.sizes_step")
def _step(ctx, x):
    return x + np.int64(1)


def ring(parties: int, ops: int) -> Callable[[Any], Any]:
    """Return a program of additions, each followed by a message to the next party."""
    to, source = list(range(parties)), [(i + 1) % parties for i in range(parties)]

    def program(x):
        for _ in range(ops // 2):
            x = mp.pshfl_s(mp.invoke(step, x), to, source)
        return x

    return program


def chain(parties: int, ops: int) -> Callable[[Any], Any]:
    """Return a program of additions."""

    def program(x):
        for _ in range(ops):
            x = mp.invoke(step, x)
        return x

    return program


def measure_ops(told: Any, make: Any, parties: int, ops: int) -> None:
    """Tell CPU µs per op of tracing, per op and party of the launches, and bytes per op."""
    with mp.Simulator(mp.ClusterSpec.simple(parties), timeout=600) as sim:
        spec, scale = sim.cluster_spec, 1e6 / ops
        mp.evaluate(sim, mp.compile(make(parties, 100), 0, cluster_spec=spec), 0, mode="launch")
        peaks, marks = Peaks([os.getpid()]), [time.process_time()]
        program = mp.compile(make(parties, ops), 0, cluster_spec=spec)
        marks.append(time.process_time())
        for _ in range(3):
            mp.evaluate(sim, program, 0, mode="launch")
            marks.append(time.process_time())
        trace, first, *later = np.diff(marks) * scale
        told.put(
            (trace, (first - min(later)) / parties, min(later) / parties, peaks.grown()[0] / ops)
        )


def in_a_process(run: Callable[..., None], *args: Any) -> Any:
    """Return what a function tells that runs in a process of its own."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=run, args=(told, *args))
    process.start()
    found = told.get()
    process.join()
    return found


def ops_table(title: str, make: Any) -> Table:
    table = Table("parties", "ops", "trace", "before the first op", "an op", "bytes", title=title)
    for parties in PARTIES:
        for ops in LENGTHS:
            if parties * ops <= max(MANY, parties * LENGTHS[0]) or parties == PARTIES[0]:
                found = in_a_process(measure_ops, make, parties, ops)
                table.add_row(str(parties), f"{ops:,}", *(f"{figure:,.1f}" for figure in found))
    return table


def processes_of(cluster: LocalCluster) -> list[int]:
    """Return the front of each worker, and the engine of its newest session."""
    found = []
    for worker in cluster.workers:
        front = psutil.Process(worker.pid)
        engines = [each for each in front.children(recursive=True) if each.name() == ENGINE]
        engine = max(engines, key=lambda each: each.create_time())
        found += [front.pid, engine.pid]
    return found


@contextlib.contextmanager
def timed(size: int) -> Iterator[list[float]]:
    """Give the MB per second of what is done meanwhile."""
    told: list[float] = []
    begin = time.perf_counter()
    yield told
    told.append(size / MB / (time.perf_counter() - begin))


def move(x):
    """Send a value from the first party to the second."""
    return mp.pshfl_s(x, [1], [0])


def measure_value(cluster: LocalCluster, megabytes: int) -> list[str]:
    """Put, move and fetch a value; return MB per second and peaks as multiples of its size."""
    size = megabytes * MB
    value = np.frombuffer(np.random.default_rng(0).bytes(size), np.int64)
    with mp.connect("http", cluster.spec, tls=cluster.tls) as host, mp.with_ctx(host):
        mp.fetch(host, mp.evaluate(host, move, mp.put("P0", np.zeros(2, np.int64))))
        peaks = Peaks([*processes_of(cluster), os.getpid()])
        with timed(size) as put:
            held = mp.put("P0", value)
        with timed(size) as moved:
            there = mp.evaluate(host, move, held)
        del held  # the worker releases it, so that the largest values fit
        with timed(size) as fetched:
            found = mp.fetch(host, there)
        grown = peaks.grown()
        assert np.array_equal(found[1], value)
        speeds = [f"{each[0]:,.0f}" for each in (put, moved, fetched)]
        return [*speeds, *(f"{each / size:.2f}" for each in grown)]


def values_table() -> Table:
    places = "front 0", "engine 0", "front 1", "engine 1", "coordinator"
    table = Table("MB", "put", "move", "fetch", *places, title="MB/s; peak ÷ the value")
    with LocalCluster(2, tls=True) as cluster:
        for megabytes in SIZES:
            table.add_row(f"{megabytes:,}", *measure_value(cluster, megabytes))
    return table


def main() -> None:
    console = Console(width=120 if not sys.stdout.isatty() else None)
    console.print(
        ops_table("additions and messages, in turn: CPU µs per op, or per op and party", ring)
    )
    console.print(ops_table("additions: CPU µs per op, or per op and party", chain))
    console.print(values_table())


if __name__ == "__main__":
    main()

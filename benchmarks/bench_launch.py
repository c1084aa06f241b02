"""What comes before the first op: the start of a cluster, and the first launch of a program.

The stages of a launch at a worker are CPU time per op, the least of several turns, in one process
with the collector as engines have it. The live figures are of three workers on this machine, which
share its cores with the host.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import numpy as np
from mplang_analysis import follow
from mplang_http import LocalCluster
from mplang_simulator.threads import ThreadCommunicator
from mplang_testing import dialect
from mplang_worker.engine.engine import GC_THRESHOLD
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.ext import WorkerInterpreter, prepared
from mplang_core.ir import from_bytes, to_bytes

STEPS = 500  # of three ops each: a pcall, its body, a shuffle
TURNS = 9


def program_of(seed: int) -> Callable[[object], object]:
    """Return a program in which a number goes from party to party; each seed gives another one."""

    def chain(x):
        for i in range(STEPS):
            other = mp.constant(np.int64(seed)) if i == 0 else x
            x = mp.simp.pcall_static((i % 3,), dialect.add, x, other)
            x = mp.pshfl_s(x, [(i + 1) % 3], [i % 3])
        return x

    return chain


def stages() -> Table:
    """Return what a worker does with a program that it has not seen."""
    scalar = mp.MPType(mp.TensorType("i64"), mp.Mask.of(0))
    cluster = mp.ClusterSpec.simple(3)
    programs = [
        mp.trace(mp.TraceContext(cluster), program_of(seed), scalar).program
        for seed in range(TURNS + 1)
    ]
    ops = sum(1 for _ in programs[0].graph.walk())
    worker = WorkerInterpreter(ThreadCommunicator.connected(3, 5.0)[0], session="bench")
    follow(programs[0])  # what is imported late
    took: dict[str, list[float]] = {}
    for data in map(to_bytes, programs[1:]):
        begin = time.process_time()
        program = from_bytes(data)
        marks = [("decode", time.process_time())]
        for name, stage in {
            "digest": lambda p: p.digest,
            "verify, passes": prepared,
            "plan": worker.make_plan,
            "follow labels": follow,
        }.items():
            stage(program)
            marks.append((name, time.process_time()))
        for name, mark in marks:
            took.setdefault(name, []).append(mark - begin)
            begin = mark
    table = Table("a first launch at a worker", "µs per op")
    for name, times in took.items():
        table.add_row(name, f"{min(times) / ops * 1e6:.1f}")
    table.add_row("all", f"{sum(map(min, took.values())) / ops * 1e6:.1f}")
    return table


def live() -> Table:
    """Return what a cluster of three takes to start, and its launches."""
    table = Table("three workers", "")
    begin = time.perf_counter()
    with LocalCluster(3, imports=("mplang_testing.dialect",)) as cluster:
        table.add_row("start", f"{time.perf_counter() - begin:.2f} s")
        with mp.connect("http", cluster.spec) as host:
            with mp.with_ctx(host):
                x = mp.put("P0", np.int64(0))
            first, second = [], []
            for seed in range(5):
                compiled = mp.compile(program_of(seed))
                ops = sum(1 for _ in compiled.trace(host, x).program.graph.walk())
                for times in (first, second):
                    begin = time.perf_counter()
                    mp.evaluate(host, compiled, x)
                    times.append(time.perf_counter() - begin)
            for name, times in {"first": first, "second": second}.items():
                took = statistics.median(times)
                per_op = took / ops * 1e6
                table.add_row(f"{name} launch of {ops} ops", f"{took * 1e3:.0f} ms")
                table.add_row(
                    "  per op, and per op and worker", f"{per_op:.0f}, {per_op / 3:.0f} µs"
                )
    return table


def main() -> None:
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    for table in (stages(), live()):
        Console().print(table)


if __name__ == "__main__":
    main()

"""Benchmark of SPU on the simulator, as a ratio to libspu alone.

libspu alone is a thread per party with a link in memory and a runtime, as in its own simulator,
which run what the simulator's runtimes ran: the same code on the same shares. Values are sealed
before; the two alternate, and times are medians. The demo is ``make demo``: its time begins with
the tracing. CPU seconds are those of all threads.

The second table is of a matrix that one party seals for three, and that they correlate; each is in
a process of its own. Memory is the peak over what the process had with the values.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import spu.libspu as libspu
from mplang_spu import engine
from peaks import Peaks
from rich.console import Console
from rich.table import Table
from spu_work import WORK

import mplang_core as mp

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import vertical_lr as demo

Job = tuple[bytes, list[Any], int]  # code, operands, the number of results
OPS = ("argmax of 1,000", "ten steps of it")
EPOCHS = 20
MATRIX = (2_000_000, 10)
MB = 1 << 20


@contextmanager
def noted() -> Iterator[dict[int, list[Job]]]:
    """Note the jobs of each member's runtime."""
    jobs: dict[int, list[Job]] = {}
    run = engine.Engine.run

    def noting(self, code, inputs, outputs):
        given = list(inputs)
        jobs.setdefault(self._link.rank, []).append((code, given, outputs))
        return run(self, code, given, outputs)

    engine.Engine.run = noting  # type: ignore[method-assign]
    try:
        yield jobs
    finally:
        engine.Engine.run = run  # type: ignore[method-assign]


def alone(jobs: dict[int, list[Job]], config: dict[str, Any]) -> None:
    """Run jobs with libspu alone."""
    desc = libspu.link.Desc()
    desc.id = uuid.uuid4().hex
    for rank in jobs:
        desc.add_party(f"P{rank}", f"P{rank}")

    def party(rank: int) -> None:
        runtime = libspu.RuntimeWrapper(
            libspu.link.create_mem(desc, rank), engine.runtime_config(config)
        )
        for code, inputs, outputs in jobs[rank]:
            ins, outs = [f"in{i}" for i in range(len(inputs))], [f"out{i}" for i in range(outputs)]
            for name, value in zip(ins, inputs, strict=True):
                runtime.SetVar(name, value)
            runtime.Run(
                libspu.Executable(name="alone", input_names=ins, output_names=outs, code=code)
            )
            for name in outs:
                runtime.GetVar(name)

    threads = [threading.Thread(target=party, args=(rank,)) for rank in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_turn(rounds: int, *runs: Callable[[], object]) -> list[tuple[float, float]]:
    """Return the seconds and the CPU seconds of each, medians of some rounds."""
    taken: list[list[tuple[float, float]]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, mine in zip(runs, taken, strict=True):
            begin, used = time.perf_counter(), time.process_time()
            run()
            mine.append((time.perf_counter() - begin, time.process_time() - used))
    columns = [zip(*mine, strict=True) for mine in taken]
    return [tuple(map(statistics.median, column)) for column in columns]  # type: ignore[misc]


def measure_op(name: str, rounds: int) -> list[tuple[float, float]]:
    """Measure an op on three parties, in launch mode."""
    fn, args = WORK[name]
    spu = {"kind": "SPU", "members": [0, 1, 2], "config": {"protocol": "ABY3"}}
    ppu = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(3)}
    spec = mp.ClusterSpec.from_dict({"nodes": [{}] * 3, "devices": {**ppu, "SP0": spu}})
    with mp.Simulator(spec, mode="launch", check_numbers=False) as sim:
        with mp.with_ctx(sim):
            given = [mp.put("P0", arg) for arg in args]
        sealed = [mp.evaluate(sim, mp.seal, arg) for arg in given]
        compiled = mp.compile(lambda *xs: mp.device("SP0")(fn)(*xs), *sealed, cluster_spec=spec)
        with noted() as jobs:
            mp.evaluate(sim, compiled, *sealed)
        config = spec.device("SP0").config.attrs()
        return in_turn(
            rounds, lambda: mp.evaluate(sim, compiled, *sealed), lambda: alone(jobs, config)
        )


def measure_demo(parties: int, protocol: str, rounds: int) -> list[tuple[float, float]]:
    """Measure the demo: checked, as ``make demo`` runs it, unchecked, and libspu alone."""
    parts = demo.load()
    spec = demo.make_cluster(argparse.Namespace(parties=parties, protocol=protocol), [])

    def run(check: Any) -> None:
        with mp.Simulator(spec, check_numbers=check) as sim:
            demo.train(sim, parts, EPOCHS, Console(file=io.StringIO()))

    with noted() as jobs:
        run(False)
    config = spec.device("SP0").config.attrs()
    return in_turn(rounds, lambda: run("warn"), lambda: run(False), lambda: alone(jobs, config))


def measure_matrix(told: Any, correlates: bool) -> None:
    """Seal a matrix, or correlate it as well; tell seconds, CPU seconds and the memory in MB."""
    x = np.random.default_rng(0).normal(size=MATRIX)
    spec = demo.make_cluster(argparse.Namespace(parties=3, protocol="ABY3"), [])
    with mp.Simulator(spec, mode="launch", check_numbers=False) as sim:
        with mp.with_ctx(sim):
            mine, few = mp.put("P0", x), mp.put("P0", x[:20])

        def correlation(x):
            sealed = mp.seal(x, "SP0")
            if not correlates:
                return sealed
            return mp.reveal(mp.device("SP0")(lambda x: jnp.corrcoef(x, rowvar=False))(sealed))

        mp.evaluate(sim, correlation, few)  # what is imported is none of the matrix
        peaks = Peaks([os.getpid()])
        ((seconds, used),) = in_turn(1, lambda: mp.evaluate(sim, correlation, mine))
        told.put((seconds, used, peaks.grown()[0] / MB, x.nbytes / MB))


def matrix(correlates: bool) -> tuple[float, float, float, float]:
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=measure_matrix, args=(told, correlates))
    process.start()
    found: tuple[float, float, float, float] = told.get()
    process.join()
    return found


def rows(name: str, where: Sequence[str], found: Sequence[tuple[float, float]]) -> Iterator[Any]:
    *ours, (base, base_cpu) = found
    for place, (seconds, used) in zip(where, ours, strict=True):
        ratio = f"{seconds / base:.2f}"
        yield name, place, f"{seconds:.3f}", f"{base:.3f}", ratio, f"{used:.2f}", f"{base_cpu:.2f}"


def main() -> None:
    console = Console(width=120 if not sys.stdout.isatty() else None)
    head = ("seconds", "libspu", "÷ libspu", "CPU s", "libspu, CPU s")
    table = Table("work", "simulator", *head)
    for op in OPS:
        for row in rows(f"ABY3×3: {op}", ["unchecked"], measure_op(op, 15)):
            table.add_row(*row)
    for parties, protocol, rounds in ((3, "ABY3", 5), (2, "CHEETAH", 1)):
        found = measure_demo(parties, protocol, rounds)
        for row in rows(f"{protocol}×{parties}: demo", ["checked", "unchecked"], found):
            table.add_row(*row)
    console.print(table)
    table = Table(f"ABY3×3, {MATRIX[0]:,} × {MATRIX[1]}", "seconds", "CPU s", "MB", "÷ the values")
    for name, correlates in (("sealed", False), ("sealed and correlated", True)):
        seconds, used, memory, values = matrix(correlates)
        numbers = f"{seconds:.1f}", f"{used:.1f}", f"{memory:.0f}", f"{memory / values:.1f}"
        table.add_row(name, *numbers)
    console.print(table)


if __name__ == "__main__":
    main()

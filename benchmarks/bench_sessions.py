"""Benchmark of sessions: what one costs, and what it feels of a hostile neighbour.

A neighbour is a coordinator with a quota of one core, whose jobs loop, take memory, crash, and
whose programs are malformed, one after the other. Times beside it are ratios to those alone, in
one run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from mplang_http import LocalCluster
from mplang_testing import dialect
from mplang_worker.tls.keygen import make_certificates
from rich.console import Console
from rich.table import Table

import mplang_core as mp

TESTS = Path(__file__).resolve().parent.parent / "plugins" / "mplang_worker" / "tests"
SESSIONS, JOBS = 20, 200
MB = 1 << 20


def typical(times) -> str:
    """Return the median of seconds, and the most."""
    return f"{statistics.median(times) * 1e3:.0f} ms (at most {max(times) * 1e3:.0f})"


def timed(run):
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def private_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def add(x):
    return mp.invoke(dialect.add, x, x)


def sessions(parties: int, tls: bool) -> list[tuple[str, str]]:
    """Return rows on sessions of a number of parties."""
    from processes import engines_of

    opened, numpy, jax, closed, memory = [], [], [], [], []
    with LocalCluster(parties, tls=tls, imports=("mplang_testing.dialect",)) as cluster:
        for number in range(SESSIONS):
            took, host = timed(lambda: mp.connect("http", cluster.spec, tls=cluster.tls))
            opened.append(took)
            fronts = [worker.pid for worker in cluster.workers]
            memory += [private_memory(pid) for front in fronts for pid in engines_of(front)]
            x = np.float32([number])
            took, _ = timed(lambda host=host, x=x: mp.fetch(host, mp.evaluate(host, add, x)))
            numpy.append(took)

            def double(x):
                return mp.device("P0")(jnp.add)(x, x)

            took, _ = timed(lambda host=host, x=x: mp.fetch(host, mp.evaluate(host, double, x)))
            jax.append(took)
            took, _ = timed(host.close)
            closed.append(took)
    which = f"{parties} {'party' if parties == 1 else 'parties'}, {'TLS' if tls else 'no TLS'}"
    return [
        (f"open and link a session, {which}", typical(opened[1:])),
        (f"its first answer, NumPy, {which}", typical(numpy[1:])),
        (f"its first answer, JAX, traced and compiled, {which}", typical(jax[1:])),
        (f"close it, {which}", typical(closed[1:])),
        (f"private memory before the first program, {which}", f"{max(memory) / MB:.1f} MB"),
    ]


def beside() -> list[tuple[str, str]]:
    """Return rows on the jobs of a coordinator, alone and beside a hostile one."""
    from test_quotas import hostile_neighbour, jobs_of

    with tempfile.TemporaryDirectory() as folder:
        files = make_certificates(Path(folder), ["alice", "host", "other"])
        with LocalCluster(
            ["alice"],
            tls=files,
            coordinators=("host", "other"),
            imports=("mplang_testing.dialect", "intruder"),
            limits={"memory": 1 << 30},
            quotas={"cores": 1},
            timeouts={"cancel": 1.0},
        ) as cluster:
            jobs_of(cluster, files, 20)
            alone = jobs_of(cluster, files, JOBS)
            with hostile_neighbour(cluster, files):
                near = jobs_of(cluster, files, JOBS)
    first, second = (statistics.quantiles(times, n=20)[-1] for times in (alone, near))
    return [
        (f"95 % of {JOBS} jobs, alone", f"{first * 1e3:.1f} ms"),
        (f"95 % of {JOBS} jobs, beside a hostile coordinator",
         f"{second * 1e3:.1f} ms, ratio {second / first:.1f}"),
    ]  # fmt: skip


def main() -> None:
    """Print a table."""
    import os

    os.environ["PYTHONPATH"] = str(TESTS)
    sys.path.insert(0, str(TESTS))
    table = Table("what", "found")
    for rows in (sessions(1, tls=False), sessions(1, tls=True), sessions(3, tls=True), beside()):
        for row in rows:
            table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

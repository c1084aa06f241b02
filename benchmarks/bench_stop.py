"""Benchmark of stopping: how long a run goes on after its owner has revoked or cancelled it.

A run is stopped at moments of its first seconds, by turns by ``mplang revoke`` and ``mplang
cancel``, on workers with TLS and gates. It has ended once the host has the error, and no process of
the session is there at any party; then its results are neither fetched nor loaded.
``bench_stop.py 10`` takes ten moments.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
from mplang_testing.waiting import DEADLINE, pause, wait_until
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.errors import MPLangError

sys.path.insert(0, str(Path(__file__).parent.parent / "plugins/mplang_worker/tests"))
from processes import processes_of_sessions
from stop_testbed import Stoppable, load, quick

MOMENTS = 4
SPAN = 4.0  # seconds of a run in which it is stopped
MEDIAN, WORST = 2.0, 5.0  # seconds
PROTOCOLS = {"ABY3": 3, "CHEETAH": 2, "SEMI2K": 3}


def _work(x):
    return jax.lax.fori_loop(0, 1_000_000, lambda i, s: jnp.tanh(s) + x, x)


def slow():
    """Store the pay, and work on it in shares for hours."""
    pay = quick()
    mp.store(pay, "pay")
    shares = mp.device("SAFE")(_work)(mp.seal(pay))
    return mp.reveal(shares, to="P0")


class Stopping:
    """Workers of one protocol, whose runs are stopped.

    Args:
        folder: the folder of all their files.
        protocol: the protocol of their SPU.
    """

    def __init__(self, folder: Path, protocol: str) -> None:
        names = ["bank", "shop", "clinic"][: PROTOCOLS[protocol]]
        self.workers = Stoppable(
            folder, controlled="bank", names=names, tls=True, insecure=protocol == "SEMI2K"
        )
        cluster = self.workers.cluster
        nodes = [{"name": each.name, "address": each.address} for each in cluster.spec.nodes]
        plain = {f"P{i}": {"kind": "PPU", "members": [name]} for i, name in enumerate(names)}
        safe = {"kind": "SPU", "members": names, "config": {"protocol": protocol}}
        self.spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": {**plain, "SAFE": safe}})

    def times(self, moments: int) -> Iterator[float]:
        """Yield how long each run goes on after it was stopped, in seconds."""
        with self.workers.cluster:
            early, _ = self.workers.approved(quick, self.spec)
            for moment in range(moments):
                yield self._stop(early, moment, SPAN * (moment + 0.5) / moments)

    def _stop(self, early: object, moment: int, after: float) -> float:
        program, _ = self.workers.approved(slow, self.spec)
        config = self.workers.folder / "bank.yaml"
        with (
            ThreadPoolExecutor(1) as pool,
            mp.connect("http", self.spec, tls=self.workers.cluster.tls) as host,
        ):
            result = mp.evaluate(host, early)
            running = pool.submit(mp.evaluate, host, program)
            pause(after, "a run is stopped at any moment")
            run = f"{host.session}-1"
            wait_until(lambda: run in self._jobs(), "the run is there")
            if moment % 2 == 0:
                approval = wait_until(lambda: self._jobs().get(run), "it has begun")
                begin = time.perf_counter()
                self.workers.revoke(approval)  # perhaps one of a run that was cancelled
            else:
                begin = time.perf_counter()
                self.workers.command("cancel", run, "-c", config)
            error = running.exception(DEADLINE)
            assert isinstance(error, MPLangError), error
            wait_until(lambda: not self._processes())
            took = time.perf_counter() - begin
            refuses(lambda: mp.fetch(host, result))
        with mp.connect("http", self.spec, tls=self.workers.cluster.tls) as host:
            refuses(lambda: mp.evaluate(host, load))
        return took

    def _jobs(self) -> dict[str, str]:
        """Return the approvals of the runs that have not ended, by the names of these."""
        config = self.workers.folder / "bank.yaml"
        rows = json.loads(self.workers.command("jobs", "-c", config, "--json"))
        return {row["run"]: row["approval"] for row in rows}

    def _processes(self) -> list[int]:
        return [
            pid for each in self.workers.cluster.workers for pid in processes_of_sessions(each.pid)
        ]


def refuses(way) -> None:
    """Check that something is refused.

    Raises:
        AssertionError: it is not.
    """
    try:
        way()
    except MPLangError:
        return
    raise AssertionError("what a stopped run made is fetched or loaded")


def main(moments: int) -> bool:
    """Print the figures; return whether they are as promised."""
    table = Table("protocol", "moments", "median, s", "worst, s")
    fine = True
    for protocol in PROTOCOLS:
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for took in Stopping(Path(folder), protocol).times(moments):
                print(f"{protocol}: {took:.2f} s", file=sys.stderr, flush=True)
                found.append(took)
        median, worst = statistics.median(found), max(found)
        fine = fine and median <= MEDIAN and worst <= WORST
        table.add_row(protocol, str(len(found)), f"{median:.2f}", f"{worst:.2f}")
    Console().print(table)
    return fine


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else MOMENTS))

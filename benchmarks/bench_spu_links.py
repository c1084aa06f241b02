"""Benchmark of SPU's links: over the workers' communicator, in memory, and over BRPC.

All parties are threads of this process; BRPC uses ports of the loopback interface. Ops run on
values that are already sealed, so sharing and revealing do not count. The modes alternate, and
times are medians; the figures are ratios to memory links. The column "new link" has channels with a
new link per op.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time

from rich.console import Console
from rich.table import Table
from spu_work import WORK, free_addresses

import mplang_core as mp

ROUNDS = 15
FIELD = "FM64"  # as in earlier runs; bench_spu_numbers compares fields
PROTOCOLS = (("SEMI2K", 2), ("ABY3", 3), ("CHEETAH", 2))
OPS = ("compare", "argmax of 1,000", "64×64 matmul", "logistic regression step")
WAYS = ("memory", "channels", "brpc", "new link")


def cluster(parties: int, protocol: str, way: str) -> mp.ClusterSpec:
    config = {
        "protocol": protocol,
        "field": FIELD,
        "use_mplang_channel": way in ("channels", "new link"),
    }
    if way == "brpc":
        config["brpc_addresses"] = free_addresses(parties)
    spu = {"kind": "SPU", "members": list(range(parties)), "config": config}
    ppu = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(parties)}
    return mp.ClusterSpec.from_dict({"nodes": [{}] * parties, "devices": {**ppu, "SP0": spu}})


def measure(protocol: str, parties: int, fn, args) -> dict[str, float]:
    """Return the seconds per op, by mode."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    with contextlib.ExitStack() as stack:
        runs = {}
        for way in WAYS:
            spec = cluster(parties, protocol, way)
            sim = stack.enter_context(mp.Simulator(spec, mode="launch"))
            sealed = [mp.evaluate(sim, mp.seal, arg) for arg in args]
            compiled = mp.compile(lambda *xs: mp.device("SP0")(fn)(*xs), *sealed, cluster_spec=spec)
            runs[way] = sim, compiled, sealed
            mp.evaluate(sim, compiled, *sealed)
        for _ in range(ROUNDS):
            for way, (sim, compiled, sealed) in runs.items():
                if way == "new link":
                    for worker in sim._parties.workers:
                        worker.resources.clear()
                begin = time.perf_counter()
                mp.evaluate(sim, compiled, *sealed)
                times[way].append(time.perf_counter() - begin)
    return {way: statistics.median(taken) for way, taken in times.items()}


def main() -> None:
    table = Table("protocol", "op", "memory, ms", *(f"{way} ×" for way in WAYS[1:]))
    for protocol, parties in PROTOCOLS:
        for name in OPS:
            fn, args = WORK[name]
            took = measure(protocol, parties, fn, args)
            base = took["memory"]
            ratios = [f"{took[way] / base:.2f}" for way in WAYS[1:]]
            table.add_row(f"{protocol}×{parties}", name, f"{base * 1e3:.1f}", *ratios)
    Console(width=100 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()

"""Benchmark of SPU on worker processes: channels over their one port, and BRPC.

A job is timed from submission to result, on values that are already sealed. BRPC uses ports of its
own, without TLS. The modes alternate; times are medians, the figures are ratios to BRPC.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time

from mplang_http import LocalCluster
from rich.console import Console
from rich.table import Table
from spu_work import WORK, free_addresses

import mplang_core as mp
from mplang_core.simp import SimpHost

ROUNDS = 15
LONG = 10.0  # seconds after which fewer rounds do
OPS = ("compare", "argmax of 1,000", "256×256 matmul", "ten steps of it")
FIELD = "FM64"  # as in earlier runs; bench_spu_numbers compares fields
PROTOCOLS = (("SEMI2K", 2), ("SEMI2K", 3), ("ABY3", 3), ("CHEETAH", 2))
WAYS = ("brpc", "no TLS", "mutual TLS")


def cluster(workers: LocalCluster, protocol: str, parties: int, way: str) -> mp.ClusterSpec:
    """Return workers of a cluster, with an SPU on all of them."""
    nodes = [{"name": n.name, "address": n.address} for n in workers.spec.nodes[:parties]]
    config = {"protocol": protocol, "field": FIELD, "use_mplang_channel": way != "brpc"}
    if way == "brpc":
        config["brpc_addresses"] = free_addresses(parties)
    spu = {"kind": "SPU", "members": list(range(parties)), "config": config}
    return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": {"SP0": spu}})


def measure(hosts: dict[str, SimpHost], fn, args) -> dict[str, float]:
    """Return the seconds per job, by mode."""
    times: dict[str, list[float]] = {way: [] for way in hosts}
    jobs = {}
    for way, host in hosts.items():
        sealed = [mp.evaluate(host, mp.seal, arg) for arg in args]
        spec = host.cluster_spec
        compiled = mp.compile(lambda *xs: mp.device("SP0")(fn)(*xs), *sealed, cluster_spec=spec)
        jobs[way] = host, compiled, sealed
        mp.evaluate(host, compiled, *sealed)
    start = time.perf_counter()
    for i in range(ROUNDS):
        if i >= 2 and time.perf_counter() - start > LONG:
            break
        for way, (host, compiled, sealed) in jobs.items():
            begin = time.perf_counter()
            mp.evaluate(host, compiled, *sealed)
            times[way].append(time.perf_counter() - begin)
    return {way: statistics.median(taken) for way, taken in times.items()}


def main() -> None:
    table = Table("protocol", "op", "BRPC, ms", *(f"{way} ×" for way in WAYS[1:]))
    with (
        LocalCluster(3, insecure=True) as plain,
        LocalCluster(3, insecure=True, tls=True) as secret,
    ):
        for protocol, parties in PROTOCOLS:
            with contextlib.ExitStack() as stack:
                hosts = {}
                for way in WAYS:
                    workers = secret if way == "mutual TLS" else plain
                    spec = cluster(workers, protocol, parties, way)
                    hosts[way] = stack.enter_context(mp.connect("http", spec, tls=workers.tls))
                for name in OPS:
                    took = measure(hosts, *WORK[name])
                    ratios = [f"{took[way] / took['brpc']:.2f}" for way in WAYS[1:]]
                    row = f"{protocol}×{parties}", name, f"{took['brpc'] * 1e3:.1f}", *ratios
                    table.add_row(*row)
    Console(width=100 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()

"""Parties that are far apart: SPU over workers' links and over BRPC, and messages of all sizes.

All parties are threads of this process; each connection goes through a proxy that delays it and
limits its rate. A job begins when all parties have its program, on values that are sealed, and its
members agree on a link in either way. Figures are medians.

What is put and fetched goes from a coordinator to a worker process with mutual TLS through such a
proxy; beside it stands the share of the rate that is used.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mplang_spu.engine_pool as engine_pool
import numpy as np
from mplang_http import LocalCluster
from mplang_http.base.address import split_address
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.link.connection import Connection
from mplang_worker.link.links import Links
from rich.console import Console
from rich.table import Table
from slow_link import slow_links
from spu_work import WORK, free_addresses

import mplang_core as mp
from mplang_core.ext import ObservedWorker

NETWORKS = ((0.0, 1e9), (0.02, 100e6), (0.05, 20e6))  # seconds each way, bits per second
PROTOCOLS = (("SEMI2K", 2), ("ABY3", 3))
OPS = ("compare", "logistic regression step")
ROUNDS = 3
LONG = 2.0  # seconds after which no more rounds are begun
TIMEOUT = 300.0
SIZES = (32, 1 << 20, 8 << 20)  # bytes
_runs = itertools.count()


@contextlib.contextmanager
def communicators(parties: int, delay: float, rate: float) -> Iterator[list[HttpCommunicator]]:
    """Link parties, each pair through a proxy."""
    names = [f"node{i}" for i in range(parties)]
    tables = [Links(name, max_message=1 << 30) for name in names]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        ports = {
            name: f"127.0.0.1:{s.getsockname()[1]}" for name, s in zip(names, servers, strict=True)
        }
        proxies = stack.enter_context(slow_links(ports, delay, rate))
        for a, b in itertools.combinations(range(parties), 2):
            host, _, port = proxies[names[b]].rpartition(":")
            near = socket.create_connection((host, int(port)))
            far, _ = servers[b].accept()
            tables[a].add(Connection(near, TIMEOUT), names[b])
            tables[b].add(Connection(far, TIMEOUT), names[a])
        yield [HttpCommunicator(i, names, table, TIMEOUT) for i, table in enumerate(tables)]


@contextlib.contextmanager
def far_brpc(real: Sequence[str], proxies: Sequence[str]) -> Iterator[None]:
    """Have each member of a BRPC link reach the others through proxies."""
    original = engine_pool.LinkCommunicator

    def far(rank: int, addrs: Any = None, **options: Any) -> Any:
        if addrs is not None:
            addrs = [real[i] if i == rank else at for i, at in enumerate(proxies)]
        return original(rank, addrs, **options)

    engine_pool.LinkCommunicator = far  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        engine_pool.LinkCommunicator = original  # type: ignore[misc]


class Parties:
    """Workers in threads, which run programs together."""

    def __init__(self, comms: Sequence[HttpCommunicator]) -> None:
        self._comms = comms
        options = {"session": "far", "insecure": True, "timeout": TIMEOUT}
        self._workers = [ObservedWorker(comm, **options) for comm in comms]
        self._pool = ThreadPoolExecutor(len(comms))

    def run(self, program: mp.Program, inputs: Sequence[Sequence[Any]]) -> tuple[float, list[Any]]:
        """Return the seconds of a run, and the results of each party."""
        run = f"run{next(_runs)}"
        list(self._pool.map(lambda comm: comm.open(run), self._comms))
        begin = time.perf_counter()
        work = lambda worker: worker.evaluate(  # noqa: E731
            program, [each[worker.rank] for each in inputs], run
        )
        results = list(self._pool.map(work, self._workers))
        took = time.perf_counter() - begin
        list(self._pool.map(lambda comm: comm.close(run), self._comms))
        return took, results


def spu_job(parties: Parties, spec: mp.ClusterSpec, fn, args) -> float:
    """Return the median seconds of a job on sealed values."""
    sealing = mp.compile(lambda: mp.seal(mp.public(tuple(args))), cluster_spec=spec).program
    _, sealed = parties.run(sealing, [])
    inputs = list(zip(*sealed, strict=True))
    device = spec.device("SP0")

    def job(*xs):
        return mp.device("SP0")(fn)(*(x.ctx.place(x, device) for x in xs))

    kinds = [value.type for value in sealing.graph.outputs]
    traced = mp.compile(job, *kinds, cluster_spec=spec)
    parties.run(traced.program, inputs)  # links the members
    times = [parties.run(traced.program, inputs)[0]]
    while len(times) < ROUNDS and sum(times) < LONG:
        times.append(parties.run(traced.program, inputs)[0])
    return statistics.median(times)


def messages(comms: Sequence[HttpCommunicator], size: int) -> float:
    """Return the median seconds of a message there and back."""
    data, times = np.zeros(size, np.uint8), []
    for comm in comms[:2]:
        comm.open("messages")
    for i in range(ROUNDS):
        begin = time.perf_counter()
        comms[0].send(1, f"messages/{size}-{i}", data)
        comms[1].recv(0, f"messages/{size}-{i}")
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def values(delay: float, rate: float) -> list[str]:
    """Put and fetch values of a worker that is far from its coordinator; return times and rates."""
    found = []
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(2, tls=True))
        address = cluster.spec.nodes[0].address
        proxies = stack.enter_context(slow_links({"P0": address.rpartition("/")[2]}, delay, rate))
        host: Any = stack.enter_context(mp.connect("http", cluster.spec, tls=cluster.tls))
        stack.enter_context(mp.with_ctx(host))
        client = host._workers[0].client
        while not client._idle.empty():
            client._idle.get().close()
        client._endpoint = split_address(f"https://{proxies['P0']}")
        mp.put("P0", np.zeros(1))  # connects
        for size in SIZES[1:]:
            data = np.random.default_rng(0).integers(1 << 60, size=size // 8)
            begin = time.perf_counter()
            held = mp.put("P0", data)
            there = time.perf_counter()
            mp.fetch(host, held)
            for took in (there - begin, time.perf_counter() - there):
                found.append(f"{took * 1e3:,.0f} ({size / took / rate:.0%})")
    return found


def main() -> None:
    head = [f"{what} {size:,} bytes, ms" for size in SIZES[1:] for what in ("put", "fetch")]
    far = Table("network", *head, title="a coordinator and a worker")
    for delay, rate in NETWORKS:
        far.add_row(f"{delay * 1e3:.0f} ms, {rate / 1e6:.0f} Mbit/s", *values(delay, rate / 8))
    Console(width=110).print(far)
    jobs = Table("network", "protocol", "op", "BRPC, ms", "links, ms", "×", "wanted")
    sizes = Table("network", *(f"{size:,} bytes, ms" for size in SIZES), title="a message, one way")
    for delay, rate in NETWORKS:
        network = f"{delay * 1e3:.0f} ms, {rate / 1e6:.0f} Mbit/s"
        for protocol, parties in PROTOCOLS:
            with contextlib.ExitStack() as stack:
                comms = stack.enter_context(communicators(parties, delay, rate / 8))
                real = free_addresses(parties)
                named = {str(i): at for i, at in enumerate(real)}
                proxies = stack.enter_context(slow_links(named, delay, rate / 8))
                stack.enter_context(far_brpc(real, [proxies[str(i)] for i in range(parties)]))
                if parties == 2:
                    sizes.add_row(network, *(f"{messages(comms, n) * 1e3:,.1f}" for n in SIZES))
                workers = {way: Parties(comms) for way in ("brpc", "links")}
                for name in OPS:
                    took = {}
                    for way in ("brpc", "links"):
                        config = {"protocol": protocol, "field": "FM64"}
                        config["use_mplang_channel"] = way == "links"
                        if way == "brpc":
                            config["brpc_addresses"] = real
                        members = list(range(parties))
                        spu = {"kind": "SPU", "members": members, "config": config}
                        ppu = {f"P{i}": {"kind": "PPU", "members": [i]} for i in members}
                        spec = mp.ClusterSpec.from_dict(
                            {"nodes": [{}] * parties, "devices": {**ppu, "SP0": spu}}
                        )
                        took[way] = spu_job(workers[way], spec, *WORK[name]) * 1e3
                    ratio = f"{took['links'] / took['brpc']:.2f}"
                    row = f"{took['brpc']:,.0f}", f"{took['links']:,.0f}", ratio, "1.0"
                    jobs.add_row(network, f"{protocol}×{parties}", name, *row)
    console = Console(width=110)
    console.print(jobs)
    console.print(sizes)


if __name__ == "__main__":
    main()

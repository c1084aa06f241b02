"""Benchmark of the HTTP backend: latency, throughput, and launches of programs.

The baseline of latency and throughput is framed TCP between two processes, in the same run; of
values with mutual TLS also one TLS stream between them, as that is what one core can do. Next to it
are the times of the public mplang (nightly 0.1.dev343) on a similar machine. All traffic is on the
loopback interface of one machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import wire_ops
from mplang_http import LocalCluster
from mplang_http.tls.files import TlsFiles
from raw_tcp import round_trips
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.simp import SimpHost

MB = 1 << 20
PAIR = mp.Mask.from_ranks([0, 1])


def pair(op, turns):
    """Return a program in which two parties run an op together."""

    def together(x):
        return mp.simp.pcall_static((0, 1), op, x, turns=turns)

    return together


def typical(times) -> float:
    return statistics.median(times)


def seconds_of(host, op, data, turns):
    took = mp.fetch(host, mp.evaluate(host, pair(op, turns), data))[0]
    return typical(took)


def timed(run, turns=5) -> float:
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return typical(times)


def throughput(what, megabytes, raw, ours, peer):
    """Return a row of the table."""
    speeds = f"{megabytes / raw:.0f} MB/s", f"{megabytes / ours:.0f} MB/s"
    return (what, *speeds, f"{ours / raw:.2f}", peer)


def messages(table: Table, hosts: dict[str, SimpHost]) -> None:
    """Measure small messages and large ones between two workers."""
    small, large = np.zeros(32, np.uint8), np.zeros(16 * MB, np.uint8)
    for name, host in hosts.items():
        raw = typical(round_trips(bytes(32), 2000)[100:])
        ours = seconds_of(host, wire_ops.pingpong, small, 2000)
        row = f"{raw * 5e5:.0f} µs", f"{ours * 5e5:.0f} µs", f"{ours / raw:.2f}", "3,500 µs"
        table.add_row(f"a message of 32 bytes, {name}", *row)
        spent = sum(mp.fetch(host, mp.evaluate(host, pair(wire_ops.cpu, 2000), small)))
        what = f"CPU time of a message of 32 bytes, both ends, {name}"
        table.add_row(what, "", f"{spent * 1e6:.0f} µs", "", "")
        raw = typical(round_trips(bytes(16 * MB), 20, 4))
        ours = seconds_of(host, wire_ops.stream, large, 20)
        what = f"16 MB from worker to worker, {name}"
        table.add_row(*throughput(what, 16, raw, ours, "103 MB/s"))


def values(table: Table, hosts: dict[str, SimpHost], tls: TlsFiles) -> None:
    """Measure uploads and downloads of values."""
    size = 256
    data = np.random.default_rng(0).integers(0, 255, size * MB, np.uint8)
    for name, host in hosts.items():

        def put(host=host):
            with mp.with_ctx(host):
                return mp.put("P0", data)

        there = mp.evaluate(host, lambda x: mp.invoke(wire_ops.copy, x), put())
        peers = {"put": "3.8 MB/s", "fetch": "2.3 MB/s"}
        for what, run in (("put", put), ("fetch", lambda h=host, there=there: mp.fetch(h, there))):
            ours = timed(run)
            raw = typical(round_trips(data.data, 5, 4))
            table.add_row(*throughput(f"{what} of 256 MB, {name}", size, raw, ours, peers[what]))
            if name == "mutual TLS":
                raw = typical(round_trips(data.data, 5, 4, tls))
                table.add_row(*throughput("… to one TLS stream", size, raw, ours, ""))


def launches(table: Table, hosts: dict[str, SimpHost]) -> None:
    """Measure a trivial program, and ops within one."""
    for name, host in hosts.items():
        once, many = seconds_of_chain(host, 1, 200), seconds_of_chain(host, 201, 20)
        table.add_row(f"a trivial program, {name}", "", f"{once * 1e3:.2f} ms", "", "13 ms")
        per_op = (many - once) / 200
        table.add_row(
            f"a shuffle within a launch, {name}", "", f"{per_op * 1e6:.0f} µs", "", "3,500 µs"
        )


def seconds_of_chain(host: SimpHost, length: int, turns: int) -> float:
    """Return the seconds of a program with ``length`` shuffles."""

    def program(x):
        for _ in range(length):
            x = mp.pshfl_s(x, PAIR, [1, 0])
        return x

    x = mp.evaluate(host, lambda: mp.constant(np.int64(1)))
    compiled = mp.compile(program, x, cluster_spec=host.cluster_spec)
    return timed(lambda: mp.evaluate(host, compiled, x), turns)


def main() -> None:
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [here, os.environ.get("PYTHONPATH", "")])
    )
    options = {"imports": ("wire_ops",), "insecure": True}
    table = Table("", "framed TCP", "workers", "ratio", "peer", title="Workers over HTTP")
    with (
        LocalCluster(2, **options) as plain,
        LocalCluster(2, tls=True, **options) as tls,
        mp.connect("http", plain.spec) as host,
        mp.connect("http", tls.spec, tls=tls.tls) as secret,
    ):
        hosts = {"no TLS": host, "mutual TLS": secret}
        assert tls.tls is not None
        messages(table, hosts)
        values(table, hosts, tls.tls)
        launches(table, hosts)
    Console(width=100 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()

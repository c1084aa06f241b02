"""Benchmark of a stream: comparisons that a host calls one after another in standard mode.

One by one each is awaited before the next is sent; ahead they are inside of ``host.pipeline()``.
The ways and both kinds alternate, on sealed values; the last result is awaited. CPU is that of the
host and of all processes of the workers, and counts where these share the cores of one machine.

The second table has a coordinator that is far from workers which are close to each other: its
connections go through a proxy that delays them.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench_spu_http import PROTOCOLS, WAYS, cluster
from mplang_http import LocalCluster
from mplang_http.base.address import split_address
from rich.console import Console
from rich.table import Table
from slow_link import slow_links
from spu_work import WORK

import mplang_core as mp
from mplang_core.simp import SimpHost

ROUNDS, COUNT = 7, 30
DELAYS = (0.005, 0.02, 0.05)  # seconds each way
RATE = 1e9 / 8  # bytes per second
TICK = os.sysconf("SC_CLK_TCK")

Taken = tuple[float, float]  # seconds and CPU seconds of a comparison


def cpu_below(pid: int) -> float:
    """Return the CPU seconds of all processes below one."""
    times, children = {}, dict[int, list[int]]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            each = int(path.parent.name)
            times[each] = (int(fields[11]) + int(fields[12])) / TICK
            children.setdefault(int(fields[1]), []).append(each)
    waiting, total = list(children.get(pid, ())), 0.0
    while waiting:
        each = waiting.pop()
        total += times[each]
        waiting += children.get(each, ())
    return total


def stream(host: SimpHost) -> Callable[[bool], Taken]:
    """Return a function that runs a stream, ahead or not, and returns what a comparison took."""
    fn, args = WORK["compare"]
    sealed = [mp.evaluate(host, mp.seal, arg) for arg in args]
    spec = host.cluster_spec
    program = mp.compile(lambda *xs: mp.device("SP0")(fn)(*xs), *sealed, cluster_spec=spec)

    def run(ahead: bool) -> Taken:
        begin = time.perf_counter(), time.process_time() + cpu_below(os.getpid())
        with host.pipeline() if ahead else contextlib.nullcontext():
            for _ in range(COUNT):
                mp.evaluate(host, program, *sealed)
        end = time.perf_counter(), time.process_time() + cpu_below(os.getpid())
        seconds, cpu = ((b - a) / COUNT for a, b in zip(begin, end, strict=True))
        return seconds, cpu

    run(False)
    return run


def in_turn(runs: Sequence[Callable[[bool], Taken]]) -> Iterator[list[Taken]]:
    """Yield per run the medians of one by one and of ahead."""
    taken: list[list[list[Taken]]] = [[[], []] for _ in runs]
    for _ in range(ROUNDS):
        for run, mine in zip(runs, taken, strict=True):
            for ahead in (False, True):
                mine[ahead].append(run(ahead))
    for mine in taken:
        columns = [zip(*each, strict=True) for each in mine]
        yield [tuple(map(statistics.median, column)) for column in columns]


def near(plain: LocalCluster, secret: LocalCluster) -> Table:
    head = ("one by one, ms", "ahead ×", "÷ BRPC", "ahead ÷ BRPC", "CPU ms", "ahead", "÷ BRPC")
    table = Table("protocol", "link", *head)
    for protocol, parties in PROTOCOLS[:3]:
        with contextlib.ExitStack() as stack:
            runs = []
            for way in WAYS:
                workers = secret if way == "mutual TLS" else plain
                spec = cluster(workers, protocol, parties, way)
                options = {"tls": workers.tls, "mode": "standard"}
                runs.append(stream(stack.enter_context(mp.connect("http", spec, **options))))
            found = list(in_turn(runs))
            base, base_ahead = found[0]
            for way, (one, ahead) in zip(WAYS, found, strict=True):
                numbers = (
                    f"{one[0] * 1e3:.1f}", f"{ahead[0] / one[0]:.2f}", f"{one[0] / base[0]:.2f}",
                    f"{ahead[0] / base_ahead[0]:.2f}", f"{one[1] * 1e3:.1f}",
                    f"{ahead[1] * 1e3:.1f}", f"{ahead[1] / base_ahead[1]:.2f}",
                )  # fmt: skip
                table.add_row(f"{protocol}×{parties}", way, *numbers)
    return table


def far(workers: LocalCluster) -> Table:
    table = Table("protocol", "delay each way, ms", "one by one, ms", "ahead, ms", "ahead ×")
    for protocol, parties in (("SEMI2K", 2), ("ABY3", 3)):
        spec = cluster(workers, protocol, parties, "mutual TLS")
        targets = {n.name: "{}:{}".format(*split_address(n.address)) for n in spec.nodes}
        for delay in DELAYS:
            with slow_links(targets, delay, RATE) as proxies:
                at = [f"https://{proxies[node.name]}" for node in spec.nodes]
                options = {"tls": workers.tls, "mode": "standard", "addresses": at}
                with mp.connect("http", spec, **options) as host:
                    ((one, ahead),) = in_turn([stream(host)])
            numbers = f"{one[0] * 1e3:.1f}", f"{ahead[0] * 1e3:.1f}", f"{ahead[0] / one[0]:.2f}"
            table.add_row(f"{protocol}×{parties}", f"{delay * 1e3:g}", *numbers)
    return table


def main() -> None:
    console = Console(width=120 if not sys.stdout.isatty() else None)
    with (
        LocalCluster(3, insecure=True) as plain,
        LocalCluster(3, insecure=True, tls=True) as secret,
    ):
        console.print(near(plain, secret))
        console.print(far(secret))


if __name__ == "__main__":
    main()

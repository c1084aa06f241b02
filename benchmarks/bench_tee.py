"""A join inside of an enclave, and in plain at one party: seconds, and bytes between the parties.

    python benchmarks/bench_tee.py               # 1,000,000 rows at each of two owners, on workers
    python benchmarks/bench_tee.py 10000

The enclave is simulated, so its quotes cost nothing; a TPM takes a tenth of a second for each
owner. The first run of a session is left out.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa
from mplang_http import LocalCluster
from rich.console import Console
from rich.table import Table

import mplang_core as mp

NAMES = ("bank", "shop", "cloud")
RUNS = 5


def joined(people, visits):
    """Return the number and the sum of pay, by visits."""
    both = people.join(visits, "id")
    return both.group_by("visits").aggregate(n=both.count(), pay=both.pay.sum())


def inside(people, visits):
    """Join in the enclave."""
    return mp.reveal(mp.device("T")(joined)(people, visits), to="bank")


def in_plain(people, visits):
    """Join at the cloud, which reads both tables."""
    there = mp.device("cloud")(joined)(mp.put("cloud", people), mp.put("cloud", visits))
    return mp.put("bank", there)


def cluster(nodes) -> mp.ClusterSpec:
    """Return a bank, a shop, and a cloud with an enclave."""
    devices = {name: {"kind": "PPU", "members": [name]} for name in NAMES}
    devices["T"] = {"kind": "TEE", "members": ["cloud"], "config": {"provider": "simulated"}}
    return mp.ClusterSpec(nodes, devices)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=[1_000_000])
    table = Table("rows each", "where", f"median of {RUNS}, s", "MB")
    with (
        LocalCluster(NAMES, insecure=True) as workers,
        mp.connect("http", cluster(workers.spec.nodes)) as host,
    ):
        for rows in parser.parse_args().rows:
            draw = np.random.default_rng(0)
            ids = draw.permutation(2 * rows)
            people = pa.table({"id": ids[:rows], "pay": draw.random(rows)})
            visits = pa.table(
                {"id": ids[rows // 2 : -rows // 2], "visits": draw.integers(9, size=rows)}
            )
            with mp.with_ctx(host):
                there = mp.put("bank", people), mp.put("shop", visits)
            programs = {"the enclave": inside, "the cloud, in plain": in_plain}
            seconds: dict[str, list[float]] = {name: [] for name in programs}
            sent = {}
            for turn in range(RUNS + 1):
                for name, program in programs.items():
                    with mp.record(host) as recording:
                        begin = time.perf_counter()
                        mp.fetch(host, mp.evaluate(host, program, *there))
                        took = time.perf_counter() - begin
                    sent[name] = sum(link.bytes for link in recording.links().values()) / 1e6
                    seconds[name] += [took] if turn else []
            for name, each in seconds.items():
                table.add_row(f"{rows:,}", name, f"{np.median(each):.3f}", f"{sent[name]:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()

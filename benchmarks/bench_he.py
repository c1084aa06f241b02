"""Private inference by ciphertexts, and by shares: seconds, and bytes between the parties.

    python benchmarks/bench_he.py                # 400 rows, on workers
    python benchmarks/bench_he.py 4096

The network of examples/inference.py, 64-32-10 with squares. By ciphertexts the clinic gets ten
scores for each row; on an SPU, of two parties (CHEETAH) and of three (ABY3), the digit alone. The
first run of a session compiles; the second one is told, too.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import time

import numpy as np
from mplang_http import LocalCluster
from rich.console import Console
from rich.table import Table

import mplang_core as mp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))

import inference


def measured(parties: int, program, x: np.ndarray, net: inference.Network) -> list[list[float]]:
    """Return seconds and megabytes of two runs on workers."""
    spec = inference.cluster(parties)
    found = []
    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(LocalCluster([node.name for node in spec.nodes]))
        here = mp.ClusterSpec(workers.spec.nodes, spec.devices)
        host = stack.enter_context(mp.connect("http", here))
        with mp.with_ctx(host):
            there = mp.put("C", x), inference.Network(*(mp.put("V", each) for each in net))
        for _ in range(2):
            begin = time.perf_counter()
            with mp.record(host) as recording:
                mp.fetch(host, mp.evaluate(host, program, *there))
            sent = sum(link.bytes for link in recording.links().values())
            found.append([time.perf_counter() - begin, sent / 1e6])
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=[400])
    chosen = parser.parse_args()
    net, images = inference.trained(), inference.digits()[0]
    table = Table("rows", "by", "first run, s", "second run, s", "MB")
    for rows in chosen.rows:
        x = np.resize(images, (rows, 64))
        for name, parties, program in (
            ("ciphertexts, CKKS: scores", 2, inference.scores),
            ("shares, CHEETAH: the digit", 2, inference.labels_on_spu),
            ("shares, ABY3: the digit", 3, inference.labels_on_spu),
        ):
            first, second = measured(parties, program, x, net)
            table.add_row(
                f"{rows:,}", name, f"{first[0]:.1f}", f"{second[0]:.1f}", f"{second[1]:.1f}"
            )
    Console().print(table)


if __name__ == "__main__":
    main()

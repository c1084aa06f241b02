"""Whether memory stays flat: the resident size over 10,000 runs of a program, in each mode."""

from __future__ import annotations

import pathlib
import resource

import numpy as np
from rich.console import Console
from rich.table import Table

import mplang_core as mp

RUNS = 10_000
MARKS = (1_000, 2_500, 5_000, 7_500, 10_000)


@mp.simple_op("bench.add")
def add(x: mp.TensorType, y: mp.TensorType) -> mp.TensorType:
    """Adds."""
    return x


@mp.kernel("bench.add")
def _add(ctx, x, y):
    return x + y


def program(x):
    y = mp.pshfl_s(mp.invoke(add, x, x), (0, 1), (1, 0))
    return mp.while_loop(lambda v: mp.constant(False), lambda v: v, y)


def megabytes() -> float:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    table = Table("mode", *(f"after {mark:,}" for mark in MARKS), title="resident MB")
    data = np.ones(1_000)
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        compiled = mp.compile(program, data, cluster_spec=sim.cluster_spec)
        for mode in ("standard", "launch"):
            sizes = []
            for i in range(1, RUNS + 1):
                mp.fetch(sim, mp.evaluate(sim, compiled, data, mode=mode))
                if i in MARKS:
                    sizes.append(megabytes())
            table.add_row(mode, *(f"{size:.1f}" for size in sizes))
    Console().print(table)


if __name__ == "__main__":
    main()

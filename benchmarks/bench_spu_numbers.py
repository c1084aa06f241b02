"""Benchmark of SPU's number formats: lowered code against libspu alone, and FM128 against FM64.

Members are threads of this process, on libspu's memory links. The variants alternate; times are
medians. The time of an identity, for reading shares in and results out, is subtracted.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from mplang_spu.lowering import PASSES
from rich.console import Console
from rich.table import Table
from spu_work import WORK, f32

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "plugins/mplang_spu/tests"))
import spu_runner  # runs a function on SPU alone

ROUNDS = 5
LARGE = (100_000, 20)
JOBS = {
    **{name: WORK[name] for name in ("argmax of 1,000", "256×256 matmul", "ten steps of it")},
    "sum of columns, 100,000×20": (lambda x: x.sum(0), (f32(*LARGE),)),
    "sum of rows, 100,000×20": (lambda x: x.sum(1), (f32(*LARGE),)),
    "mean of columns, 100,000×20": (lambda x: x.mean(0), (f32(*LARGE),)),
    "divide 8,192": (lambda x, y: x / y, (f32(8192), f32(8192))),
    "sqrt of 8,192": (jnp.sqrt, (np.abs(f32(8192)),)),
    "exp of 8,192": (jnp.exp, (f32(8192),)),
    "tanh of 8,192": (jnp.tanh, (f32(8192),)),
    "softmax of 512×16": (lambda x: jax.nn.softmax(x, axis=1), (f32(512, 16),)),
    "sort of 2,000": (jnp.sort, (f32(2000),)),
}
WAYS = [(field, passes) for field in ("FM64", "FM128") for passes in ((), PASSES)]


def measure(protocol: str, fn, args) -> list[float]:
    """Return the seconds of each variant, without reading in and out."""
    times: list[list[float]] = [[] for _ in WAYS]
    for _ in range(ROUNDS):
        for way, (field, passes) in enumerate(WAYS):
            how = {"protocol": protocol, "field": field, "passes": passes}
            net = _took(fn, args, how) - _took(lambda *xs: [x[:1] for x in xs], args, how)
            times[way].append(net)
    return [statistics.median(taken) for taken in times]


def _took(fn, args, how) -> float:
    job = spu_runner.prepare(fn, *args, **how)
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def main() -> None:
    """Print the table."""
    table = Table(
        "protocol", "job", "FM64 alone", "lowered ×", "FM128 alone", "lowered ×", "FM128 / FM64"
    )
    for protocol in sys.argv[1:] or ["ABY3", "SEMI2K"]:
        for name, (fn, args) in JOBS.items():
            a, b, c, d = measure(protocol, fn, args)
            cells = f"{a * 1e3:.0f} ms", f"{b / a:.2f}", f"{c * 1e3:.0f} ms", f"{d / c:.2f}"
            table.add_row(protocol, name, *cells, f"{d / b:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

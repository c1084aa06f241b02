"""What the passes pay: chains, loops and branches on the simulator, with and without them.

Wall and CPU time per op or turn in microseconds, the least of several launches, and of the first
one, which compiles. "Without" leaves out the pass that the row names, in the same run of the
benchmark. The public mplang (nightly 0.1.dev343) takes 85 µs per op of a launch of two parties.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

import mplang_core as mp
from mplang_core.ext import passes

STEPS = 1000
REPEAT = 5


def chain(x):
    """A thousand additions."""
    for _ in range(STEPS):
        x = x + 1
    return x


def mixed(x):
    """Eight functions again and again, as of a program of many lines."""
    for i in range(STEPS):
        x = x * 2 if i % 8 == 0 else x - (i % 8)
    return x


def loop(kind, n, **options):
    """Count up to a public number."""
    step = lambda state: (state[0] + kind(1), state[1] + state[0])  # noqa: E731
    start = kind(0), kind(0)
    return mp.while_loop(lambda state: state[0] < n, step, start, **options)[1]


def branches(x):
    """A branch in each turn of a loop."""

    def body(state):
        i, x = state
        x = mp.uniform_cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 2 % 1000, x)
        return i + 1, x

    return mp.while_loop(lambda state: state[0] < STEPS, body, (0, x))[1]


def integers(n):
    return loop(int, n)


def floats(n):
    return loop(float, n)


def unchecked(n):
    return loop(float, n, verify_uniform=False)


@contextlib.contextmanager
def left_out(*names: str) -> Iterator[None]:
    """Have no party apply some passes."""
    found = {name: (passes.get(name), passes.provider(name)) for name in names}
    for name in names:
        passes.remove(name)
    try:
        yield
    finally:
        for name, (each, provider) in found.items():
            passes.add(name, each, provider=provider)


def measure(fn, arg, parties: int, steps: int) -> tuple[float, float, float]:
    """Return the time of the first launch, and the least time and CPU time of later ones."""
    with mp.Simulator(mp.ClusterSpec.simple(parties)) as sim:
        program = mp.compile(fn, arg, cluster_spec=sim.cluster_spec)
        times = []
        for _ in range(REPEAT):
            begin, cpu = time.perf_counter(), time.process_time()
            mp.fetch(sim, mp.evaluate(sim, program, arg, mode="launch"))
            times.append((time.perf_counter() - begin, time.process_time() - cpu))
    first, later = times[0], times[1:]
    scale = 1e6 / steps
    return first[0] * scale, min(t for t, _ in later) * scale, min(c for _, c in later) * scale


def main() -> None:
    table = Table("per op or turn", "µs", "CPU", "first", "without the pass", "its first", "wanted")

    def row(what, fn, arg, parties, names=(), wanted="", steps=STEPS):
        first, least, cpu = measure(fn, arg, parties, steps)
        other = ("", "")
        if names:
            with left_out(*names):
                before = measure(fn, arg, parties, steps)
            other = f"{before[1]:,.1f}", f"{before[0]:,.1f}"
        figures = f"{least:,.2f}", f"{cpu:,.2f}", f"{first:,.1f}"
        table.add_row(f"{what}, {parties} parties", *figures, *other, wanted)

    converted = ("convert_control_flow",)
    agreed = ("clear_agreements",)
    row("chain of x = x + 1", chain, 0, 2, ("link_modules",), "5")
    row("chain of eight functions", mixed, 0, 2, ("link_modules",))
    row("loop without messages", unchecked, float(STEPS), 2, converted, "5")
    row("loop with a branch", branches, 0, 2, (*converted, *agreed))
    for parties, wanted in ((2, "150"), (32, "1,000")):
        row("loop to a public integer", integers, STEPS, parties, agreed, wanted)
        row(
            "loop with a compared predicate",
            floats,
            200.0,
            parties,
            ("fold_conditions",),
            wanted,
            200,
        )
    Console().print(table)
    begin = time.process_time()
    [np.add(i, 1) for i in range(100_000)]
    call = (time.process_time() - begin) * 10
    trace = []
    for _ in range(REPEAT):
        begin = time.process_time()
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), chain, 0)
        trace.append((time.process_time() - begin) / STEPS * 1e6)
    least = min(trace)
    print(f"trace of the chain, per op: {least:.0f} µs of CPU, {least / call:.0f} NumPy calls")


if __name__ == "__main__":
    main()

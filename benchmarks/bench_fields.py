"""Measure programs of integers in FM128 and FM64; with ``--write``, put the table into a README.

Milliseconds of CPU of all parties in one process, sharing and revealing included, the median of
five runs after the first. Both fields run in turn. CHEETAH has SoftSpoken's oblivious transfers.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time

import jax.numpy as jnp
import numpy as np

import mplang_core as mp

README = pathlib.Path(__file__).parents[1] / "plugins/mplang_spu/README.md"
BEGIN, END = "<!-- fields: by benchmarks/bench_fields.py -->\n", "<!-- end of fields -->\n"
FIELDS = ("FM128", "auto")
MEMBERS = {"ABY3": 3, "CHEETAH": 2}
RUNS = 5
PROGRAMS = {
    "`x > y`": ((50_000, 50_000), lambda x, y: x > y),
    "`jnp.where(x > y, x, y).sum()`": ((50_000, 50_000), lambda x, y: jnp.where(x > y, x, y).sum()),
    "`x @ y`": ((50_000, 50_000), lambda x, y: x @ y),
    "`(x[:, None] == y).sum()`": ((100, 100), lambda x, y: (x[:, None] == y).sum()),
    "`jnp.argmax(x)`": ((2000, 2000), lambda x, y: jnp.argmax(x)),
    "`jnp.sort(x)`": ((1000, 1000), lambda x, y: jnp.sort(x)),
}


def cluster(protocol: str, field: str) -> mp.ClusterSpec:
    """Return a cluster of one SPU of all parties."""
    found = mp.ClusterSpec.simple(MEMBERS[protocol])
    config = {"protocol": protocol, "field": field}
    config |= {"ot": "softspoken"} if protocol == "CHEETAH" else {}
    spu = {"kind": "SPU", "members": list(found.mask), "config": config}
    return mp.ClusterSpec(found.nodes, {**found.devices, "SP0": spu})


def measured(protocol: str, name: str) -> list[float]:
    """Return milliseconds per field."""
    sizes, fn = PROGRAMS[name]
    rng = np.random.default_rng(0)
    data = [rng.integers(-(10**6), 10**6, size).astype(np.int32) for size in sizes]

    def program(x, y):
        return mp.reveal(mp.device("SP0")(fn)(mp.seal(x), mp.seal(y)), to="P0")

    hosts = [
        mp.Simulator(cluster(protocol, field), mode="launch", check_numbers=False)
        for field in FIELDS
    ]
    seconds: list[list[float]] = [[] for _ in FIELDS]
    for _ in range(RUNS + 1):
        for host, mine in zip(hosts, seconds, strict=True):
            with mp.with_ctx(host):
                x, y = mp.put("P0", data[0]), mp.put("P1", data[1])
            compiled = mp.compile(program, cluster_spec=host.cluster_spec)
            compiled.trace(host, x, y)
            begin = time.process_time()
            mp.evaluate(host, compiled, x, y)
            mine.append(time.process_time() - begin)
    for host in hosts:
        host.close()
    return [1000 * statistics.median(mine[1:]) for mine in seconds]


def main() -> None:
    """Measure, and print or write the table."""
    head = "| int32 | ABY3: FM128 | FM64 | | CHEETAH: FM128 | FM64 | |\n"
    lines = [head, "|" + " --- |" * 7 + "\n"]
    for name, (sizes, _) in PROGRAMS.items():
        cells = []
        for protocol in MEMBERS:
            wide, narrow = measured(protocol, name)
            cells += [f"{wide:.0f}", f"{narrow:.0f}", f"{wide / narrow:.1f}×"]
        lines.append(f"| {name} of {sizes[0]:,} | {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    if "--write" in sys.argv:
        text = README.read_text(encoding="utf-8")
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        README.write_text(text[:start] + "".join(lines) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()

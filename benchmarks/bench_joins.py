"""Time of a sum over two parties' joined tables, in 25 groups, beside the same by hand on libspu.

    python benchmarks/bench_joins.py              # 1,000 and 10,000 keys a party
    python benchmarks/bench_joins.py 100000       # as many keys
    python benchmarks/bench_joins.py --workers    # on production workers, too

Half of the keys are in common. Of each program the second run is measured, which is compiled. By
hand are the same steps in JAX, compiled and run by libspu's own simulator: one sort of all keys
with both sides' numbers, comparisons of neighbours, a product of matrices. Seconds of a comparison
of 16,384 numbers in the same run tell how busy the machine is.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spu.libspu as libspu
from jax import lax
from mplang_http import LocalCluster
from rich.console import Console
from rich.table import Table
from spu.utils.simulation import Simulator as BareSimulator, sim_jax

import mplang_core as mp

PARTIES = ("bank", "shop", "lab")
GROUPS = 5
COMPARED = 16_384
QUERY = """
SELECT city, kind, sum(rate * spent) AS total
FROM {people} JOIN {sales} ON id = who
GROUP BY city, kind
"""


def tables(keys: int) -> dict[str, dict[str, pa.Table]]:
    """Return the tables of both parties, half of whose keys are in common."""
    rng = np.random.default_rng(7)
    drawn = rng.permutation(np.arange(1, 2 * keys + 1))
    people = pa.table(
        {
            "id": drawn[:keys], "city": rng.integers(0, GROUPS, keys),
            "rate": rng.integers(1, 9, keys),
        }
    )  # fmt: skip
    mine = drawn[keys // 2 : keys // 2 + keys]
    sales = pa.table(
        {
            "who": mine, "kind": rng.integers(0, GROUPS, keys),
            "spent": rng.integers(1, 10**6, keys),
        }
    )  # fmt: skip
    return {"bank": {"people": people}, "shop": {"sales": sales}}


def catalogue(keys: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Return both tables as their owners describe them, in files of a folder."""
    made: dict[str, dict[str, Any]] = {}
    for party, (key, group) in {"bank": ("id", "city"), "shop": ("who", "kind")}.items():
        ((name, table),) = tables(keys)[party].items()
        pq.write_table(table, folder / f"{name}.parquet")
        made[party] = {
            name: {
                "source": f"parquet:{folder / name}.parquet",
                "columns": dict.fromkeys(table.column_names, "int64"),
                "keys": {key: {"at_most": keys}}, "ranges": {group: [0, GROUPS - 1]}, "unit": key,
            }
        }  # fmt: skip
    return made


def by_query(match: str) -> Callable[[], Any]:
    """Return the program that asks in SQL."""

    def program() -> Any:
        people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
        asked: Any = mp.sql("SP0", QUERY, match=match, people=people, sales=sales)
        return mp.reveal(asked, to="P0")

    return program


def by_join() -> Any:
    """Return the sum of products over rows that are joined, without groups."""
    people, sales = mp.dataset("bank", "people", ["id", "rate"]), mp.dataset("shop", "sales")
    sales = mp.device("P1")(lambda t: t.select("who", "spent"))(sales)
    both = mp.join(people, sales, on=[("id", "who")])
    return mp.reveal(mp.device("SP0")(lambda c: (c["rate"] * c["spent"]).sum())(both.columns))


def by_guard() -> Any:
    """Return a guarded sum over people in common."""
    people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
    both = mp.overlap(people, sales, on=[("id", "who")])
    told = mp.guard.aggregate(both, k=20, by=["city", "kind"], total=("spent", "sum"))
    return mp.reveal(told, to="P0")


PROGRAMS: Mapping[str, Callable[[], Any]] = {
    "mp.join, one column each": by_join, "query, secret": by_query("secret"),
    "query, psi": by_query("psi"), "guard of an overlap": by_guard,
}  # fmt: skip


def seconds(run: Callable[[], Any]) -> float:
    """Return the seconds of the second run."""
    run()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def cluster(protocol: str) -> mp.ClusterSpec:
    """Return three parties, or two for CHEETAH, with an SPU of all."""
    names = PARTIES if protocol == "ABY3" else PARTIES[:2]
    devices: dict[str, Any] = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(len(names))}
    devices["SP0"] = {
        "kind": "SPU", "members": list(names), "config": {"protocol": protocol}
    }  # fmt: skip
    return mp.ClusterSpec.from_dict({"nodes": [{"name": n} for n in names], "devices": devices})


def on_simulator(protocol: str, data: Mapping[str, Any]) -> dict[str, float]:
    """Measure the programs, and a comparison of as many numbers as all such lines count."""
    found = {}
    with mp.Simulator(cluster(protocol), data=data, mode="launch", check_numbers=False) as sim:
        for name, program in PROGRAMS.items():
            compiled = mp.compile(program, cluster_spec=sim.cluster_spec)
            found[name] = seconds(lambda c=compiled: mp.evaluate(sim, c))  # type: ignore[misc]
        x = np.arange(COMPARED)
        with mp.with_ctx(sim):
            given = [mp.seal(mp.put("P0", each), to="SP0") for each in (x, x[::-1])]
        less = mp.compile(
            lambda a, b: mp.device("SP0")(lambda a, b: a < b)(a, b), *given,
            cluster_spec=sim.cluster_spec,
        )  # fmt: skip
        found["a comparison of 16,384"] = seconds(lambda: mp.evaluate(sim, less, *given))
    return found


def on_workers(data: Mapping[str, Any]) -> float:
    """Measure the query on workers, without TLS."""
    with (
        LocalCluster(PARTIES, data=data, insecure=True) as made,
        mp.connect("http", made.spec) as host,
    ):
        compiled = mp.compile(by_query("secret"), cluster_spec=host.cluster_spec)
        return seconds(lambda: mp.evaluate(host, compiled))


def by_hand(protocol: str, keys: int) -> float:
    """Measure the same steps on bare libspu."""
    kind = {"ABY3": libspu.ProtocolKind.ABY3, "CHEETAH": libspu.ProtocolKind.CHEETAH}[protocol]
    config = libspu.RuntimeConfig(protocol=kind, field=libspu.FieldType.FM128)
    config.fxp_fraction_bits = 40
    methods = libspu.RuntimeConfig.SortMethod
    config.sort_method = methods.SORT_RADIX if protocol == "ABY3" else methods.SORT_NETWORK
    run = sim_jax(BareSimulator(3 if protocol == "ABY3" else 2, config), _hand)
    both = tables(keys)
    people, sales = both["bank"]["people"], both["shop"]["sales"]
    tokens = [t.to_numpy() * 2**20 * 2 + i for i, t in enumerate((people["id"], sales["who"]))]
    planes = [
        np.where(np.arange(GROUPS)[:, None] == group.to_numpy(), number.to_numpy(), 0)
        for group, number in ((people["city"], people["rate"]), (sales["kind"], sales["spent"]))
    ]
    right = _plain(tokens, planes)
    jax.config.update("jax_enable_x64", True)
    return seconds(lambda: _same(run(*tokens, *planes), right))


def _hand(a: Any, b: Any, rates: Any, spent: Any) -> Any:
    tokens = jnp.concatenate([a, b])
    numbers = [jnp.concatenate([rates[i], spent[i]]) for i in range(GROUPS)]
    tokens, *numbers = lax.sort((tokens, *numbers), num_keys=1, is_stable=False)
    matched = tokens[1:] - tokens[:-1] == 1
    mine = jnp.stack([each[:-1] for each in numbers])
    others = jnp.stack([jnp.where(matched, each[1:], 0) for each in numbers])
    return jnp.matmul(mine, others.T)


def _plain(tokens: Any, planes: Any) -> Any:
    places = {int(t) // 2: i for i, t in enumerate(tokens[1])}
    pairs = [(i, places[int(t) // 2]) for i, t in enumerate(tokens[0]) if int(t) // 2 in places]
    mine, others = zip(*pairs, strict=True)
    return planes[0][:, list(mine)] @ planes[1][:, list(others)].T


def _same(found: Any, right: Any) -> None:
    if not np.array_equal(found, right):
        raise SystemExit("by hand it gives something else")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("keys", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--protocol", default="ABY3", choices=["ABY3", "CHEETAH"])
    parser.add_argument("--workers", action="store_true", help="measure on workers, too")
    chosen = parser.parse_args()
    table = Table("keys a party", "what", "seconds", "ratio to libspu by hand")
    for keys in chosen.keys:
        hand = by_hand(chosen.protocol, keys)
        with tempfile.TemporaryDirectory() as folder:
            data = catalogue(keys, Path(folder))
            found = on_simulator(chosen.protocol, data)
            if chosen.workers:
                found["query, secret, on workers"] = on_workers(data)
        table.add_row(f"{keys:,}", "libspu by hand", f"{hand:.2f}", "1")
        for name, taken in found.items():
            table.add_row("", name, f"{taken:.2f}", f"{taken / hand:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()

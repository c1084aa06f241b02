"""Benchmark of the owner's gate: what rules, approvals and the log add to a run.

The program is that of ``make demo-hospitals``. Launches with and without gates take turns; all
figures are medians.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mplang_analysis import RunRequest, follow
from mplang_http import LocalCluster
from mplang_policy import Gate, GateConfig, Ledger, Names, Rules, decide
from mplang_policy.offline import asked_of
from mplang_policy.requests import requests_of
from rich.console import Console
from rich.table import Table

import mplang_core as mp

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "hospitals"))
import organizations
import program

PERMIT_ALL = "permit (principal, action, resource);"
TIMES = 30
LAUNCHES = 5


def median(way: Callable[[], object], times: int = TIMES) -> float:
    """Return the median time of a call, in milliseconds."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        way()
        found.append(time.perf_counter() - begin)
    return statistics.median(found) * 1e3


def traced(made: organizations.Organizations):
    """Return a fresh trace of the demo's program."""
    nodes = [{"name": name} for name in organizations.NAMES]
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": program.DEVICES})
    hidden = ("source", "readers")
    known = {
        party: {n: {k: v for k, v in f.items() if k not in hidden} for n, f in sets.items()}
        for party, sets in made.simulated().items()
    }
    with mp.catalogue(known):
        return mp.compile(program.train, cluster_spec=cluster).trace(None).program


def of_known(folder: Path) -> tuple[float, int]:
    """Return how long a gate takes for a program that it knows, and the number of its rows."""
    (folder / "bank.cedar").write_text(PERMIT_ALL)
    config = GateConfig(policy="bank.cedar", log="bank.db").at(str(folder))
    columns = {f"c{i}": "f64[3]" for i in range(15)}
    known = {"bank": {name: {"array": kind} for name, kind in columns.items()}}

    def many():
        return [mp.put("P1", mp.dataset("bank", name)) for name in columns]

    with mp.catalogue(known):
        cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
        found = mp.compile(many, cluster_spec=cluster).trace(None).program
    asked = asked_of(found, ["bank", "shop"], "bank", "local", "production")
    run = RunRequest("s", "s-0", asked, shared="s-0")
    gate = Gate(config, "bank", Names.of({"name": "bank", "data": known["bank"]}))
    gate.decide(run)
    rows = sum(request.row is not None for request in requests_of(run.asked, {}))
    return median(lambda: gate.decide(run)), rows


def launches(made: organizations.Organizations, folder: Path) -> tuple[float, float]:
    """Return the median seconds of a launch of the demo's program, without and with gates."""
    times: dict[bool, list[float]] = {False: [], True: []}
    gates = {}
    for name in organizations.NAMES:
        (folder / f"{name}.cedar").write_text(PERMIT_ALL)
        gates[name] = {"policy": str(folder / f"{name}.cedar"), "log": str(folder / f"{name}.db")}
    data = {party: dict(sets) for party, sets in made.simulated().items()}
    for sets in data.values():
        for name, fields in sets.items():
            sets[name] = {**fields, "readers": ["local"]}
    options = {"data": data, "mode": "production"}
    names = organizations.NAMES
    with (
        LocalCluster(names, **options) as without,
        LocalCluster(names, gates=gates, **options) as gated,
        mp.connect("http", _with_devices(without)) as plain,
        mp.connect("http", _with_devices(gated)) as asked,
    ):
        for i in range(LAUNCHES + 1):
            for with_gate, host in ((False, plain), (True, asked)):
                begin = time.perf_counter()
                mp.evaluate(host, program.train)
                if i:  # the first one compiles
                    times[with_gate].append(time.perf_counter() - begin)
    return statistics.median(times[False]), statistics.median(times[True])


def _with_devices(cluster: LocalCluster) -> mp.ClusterSpec:
    nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
    return mp.ClusterSpec.from_dict({"nodes": nodes, "devices": program.DEVICES})


def main() -> None:
    """Measure, and print a table."""
    table = Table("what", "time", "limit", title="The owner's gate")
    with tempfile.TemporaryDirectory() as path:
        made = organizations.Organizations(Path(path) / "organizations")
        programs = [traced(made) for _ in range(5)]
        found = [median(lambda each=each: follow(each), 1) for each in programs[:1]]
        table.add_row("analysis of the demo's program, once", f"{found[0]:.1f} ms", "100 ms")

        names = Names.of({"name": "hospital_b", "data": made.simulated()["hospital_b"]})
        rules = Rules.of({"all.cedar": PERMIT_ALL}, names)
        asked = asked_of(programs[0], organizations.NAMES, "hospital_b", "analyst", "production")
        requests = requests_of(asked, {})
        took = median(lambda: decide(rules, requests))
        label = f"decision, {len(requests)} rows of {len(requests[2].context['columns'])} columns"
        table.add_row(label, f"{took:.1f} ms", "")
        took, rows = of_known(Path(path))
        table.add_row(f"decision on a known program, {rows} rows", f"{took:.3f} ms", "10 ms for 30")

        ledger = Ledger(Path(path) / "gate.db")
        about = {"coordinator": "analyst", "run": "s-0", "program": "0" * 64}
        table.add_row(
            "entry of the log", f"{median(lambda: ledger.add('run', about)):.2f} ms", "1 ms"
        )

        plain, gated = launches(made, Path(path))
        told = f"{plain:.2f} s, with gates {gated:.2f} s: {gated / plain:.3f}"
        table.add_row("launch of the demo's program", told, "1.1")
    Console().print(table)


if __name__ == "__main__":
    main()

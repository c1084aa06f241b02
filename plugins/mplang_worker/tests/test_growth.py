"""Processes of a session grow by nothing once its bounded tables are full, whatever they read."""

from __future__ import annotations

from pathlib import Path

import counting_ops
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from mplang_http import LocalCluster
from mplang_worker.link.link import MAX_ENDED
from processes import engine_of, mpc_process_of

import mplang_core as mp

JOBS = 10  # whose status is kept
ROWS = 2_000
SAMPLES = 4  # of memory, of which the least counts: what is freed is returned now and then
RUNS = 40  # between two samples
WARM = 100  # runs until allocators have what they keep
PER_RUN = 16  # KB; it was 37 at the party that reads

pytestmark = [
    pytest.mark.long("runs until the tables of a session are full"),
    pytest.mark.timeout(1200),
]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Return two workers with gates, the first of which has a data set of each kind of file."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    frame = pd.DataFrame({"id": np.arange(ROWS), "pay": np.linspace(1, 2, ROWS)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    np.save(tmp_path / "pay.npy", frame["pay"].to_numpy())
    table = {"columns": {"id": "int64", "pay": "float64"}, "unit": "id"}
    data = {
        "csv": {**table, "source": f"csv:{tmp_path}/people.csv"},
        "parquet": {**table, "source": f"parquet:{tmp_path}/people.parquet"},
        "npy": {"array": f"f64[{ROWS}]", "source": f"npy:{tmp_path}/pay.npy"},
    }
    (tmp_path / "all.cedar").write_text("permit (principal, action, resource);")
    gates = {
        name: {"policy": f"{tmp_path}/all.cedar", "log": f"{tmp_path}/{name}.db"}
        for name in ("bank", "shop")
    }
    with LocalCluster(
        ["bank", "shop"], data={"bank": data}, gates=gates, limits={"jobs": JOBS},
        imports=("counting_ops",), mode="production",
    ) as cluster:  # fmt: skip
        yield cluster


def objects_of(host):
    """Return a function that counts the objects of the first party's engine."""
    with mp.with_ctx(host):
        any_number = mp.put("P0", np.int64(0))
    count = mp.compile(lambda x: mp.device("P0")(counting_ops.objects)(x))
    return lambda: int(mp.fetch(host, mp.evaluate(host, count, any_number)))


def test_runs_that_have_ended_leave_no_objects_behind(cluster):
    """A session of a week grew by 37 MB in a thousand runs at the party that reads."""

    def mean():
        return mp.device("P0")(lambda t: t.agg(mean=t.pay.mean()))(mp.dataset("bank", "csv"))

    with mp.connect("http", cluster.spec) as host:
        program, count, counts = mp.compile(mean), objects_of(host), []
        for runs in (MAX_ENDED + RUNS, RUNS):
            for _ in range(runs):
                mp.fetch(host, mp.evaluate(host, program))
            counts.append(count())
    grown = counts[1] - counts[0]
    assert grown < RUNS, f"{grown} objects in {RUNS} runs: {counts}"


def private_memory(pid):
    """Return how much memory a process has for itself, in KB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def test_neither_engine_nor_front_nor_mpc_process_grows(cluster):
    """One program reads CSV, Parquet and npy, aggregates, and computes on shares."""

    def read_all():
        tables = [mp.dataset("bank", name) for name in ("csv", "parquet")]
        means = [mp.device("P0")(lambda t: t.agg(mean=t.pay.mean()))(each) for each in tables]
        guarded = mp.guard.aggregate(tables[0], unit="id", k=10, pay=("pay", "mean"))
        pay = mp.dataset("bank", "npy")
        total = mp.device("SP0")(lambda x: jnp.sum(x))(mp.device("P0")(lambda x: x[:16])(pay))
        return *means, guarded, mp.device("P0")(jnp.sum)(pay), mp.reveal(total, to="P1")

    with mp.connect("http", cluster.spec) as host:
        program = mp.compile(read_all)

        def run(times):
            for _ in range(times):
                mp.fetch(host, mp.evaluate(host, program))

        run(WARM)
        fronts = [worker.pid for worker in cluster.workers]
        watched = {f"front {pid}": pid for pid in fronts}
        watched |= {f"engine of {pid}": engine_of(pid) for pid in fronts}
        watched |= {f"MPC process of {pid}": mpc_process_of(pid) for pid in fronts}

        def least():
            seen = []
            for _ in range(SAMPLES):
                run(RUNS)
                seen.append({name: private_memory(pid) for name, pid in watched.items()})
            return {name: min(each[name] for each in seen) for name in watched}

        before, after = least(), least()
    grown = {name: (after[name] - before[name]) / (SAMPLES * RUNS) for name in watched}
    assert max(grown.values()) < PER_RUN, f"KB a run: {grown}"

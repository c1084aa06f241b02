"""An engine that reads data grows by nothing once its bounded tables are full."""

from __future__ import annotations

from pathlib import Path

import counting_ops
import numpy as np
import pandas as pd
import pytest
from mplang_http import LocalCluster
from mplang_worker.link.link import MAX_ENDED

import mplang_core as mp

JOBS = 10  # whose status is kept
RUNS = 60

pytestmark = pytest.mark.long("runs until the tables of a session are full")


def test_runs_that_have_ended_leave_no_objects_behind(tmp_path, monkeypatch):
    """A session of a week grew by 37 MB in a thousand runs at the party that reads."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    pd.DataFrame({"pay": np.arange(100.0)}).to_csv(tmp_path / "people.csv", index=False)
    data = {"source": f"csv:{tmp_path}/people.csv", "columns": {"pay": "float64"}}

    def mean():
        return mp.device("P0")(lambda t: t.agg(mean=t.pay.mean()))(mp.dataset("bank", "people"))

    def count(x):
        return mp.device("P0")(counting_ops.objects)(x)

    with (
        LocalCluster(
            ["bank", "shop"], data={"bank": {"people": data}}, limits={"jobs": JOBS},
            imports=("counting_ops",), mode="production",
        ) as cluster,
        mp.connect("http", cluster.spec) as host,
    ):  # fmt: skip
        with mp.with_ctx(host):
            any_number = mp.put("P0", np.int64(0))
        program, counts = mp.compile(mean), []
        for runs in (MAX_ENDED + RUNS, RUNS):
            for _ in range(runs):
                mp.fetch(host, mp.evaluate(host, program))
            counts.append(int(mp.fetch(host, mp.evaluate(host, count, any_number))))
    grown = counts[1] - counts[0]
    assert grown < RUNS, f"{grown} objects in {RUNS} runs: {counts}"

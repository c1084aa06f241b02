"""Twenty coordinators at once, with default settings: a busy machine is slow, never dead."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing

import pandas as pd
import pytest
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_policy import Ledger
from mplang_testing.waiting import wait_until
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp

NAMES = ["bank", "shop"]
COORDINATORS = ["host", *(f"analyst{i}" for i in range(1, 20))]
RUNS = 10

pytestmark = [pytest.mark.long("200 runs of 20 sessions"), pytest.mark.timeout(1200)]


def mean_pay():
    return mp.device("P0")(lambda t: t.agg(mean=t.pay.mean()))(mp.dataset("bank", "people"))


def test_none_fails_none_is_accused_and_all_is_on_record(tmp_path):
    pd.DataFrame({"pay": [1.0, 2.0]}).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "rules.cedar").write_text("permit (principal, action, resource);")
    data = {"source": f"csv:{tmp_path}/people.csv", "columns": {"pay": "float64"}}
    gates = {
        name: {"policy": f"{tmp_path}/rules.cedar", "log": f"{tmp_path}/{name}.db"}
        for name in NAMES
    }
    files = make_certificates(tmp_path / "keys", [*NAMES, *COORDINATORS])
    failures, begun = [], threading.Barrier(len(COORDINATORS))

    with LocalCluster(
        NAMES, tls=files, coordinators=COORDINATORS, gates=gates, mode="production",
        data={"bank": {"people": {**data, "readers": COORDINATORS}}},
    ) as cluster:  # fmt: skip

        def work(name):
            begun.wait()
            try:
                with mp.connect("http", cluster.spec, tls=files[name]) as host:
                    for _ in range(RUNS):
                        means = mp.fetch(host, mp.evaluate(host, mean_pay))
                        assert means.to_pydict() == {"mean": [1.5]}
            except BaseException as error:
                failures.append(f"{name}: {error!r}")

        threads = [threading.Thread(target=work, args=[name]) for name in COORDINATORS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        rows = cluster_status(cluster.spec, files[COORDINATORS[0]], patience=30.0)
        assert [row["crashes"] for row in rows] == [0, 0]

        def kinds(name):
            with closing(Ledger(tmp_path / f"{name}.db", read_only=True)) as ledger:
                return Counter(entry.kind for entry in ledger.entries())

        total = len(COORDINATORS) * RUNS
        for name in NAMES:
            wait_until(lambda name=name: kinds(name)["end"] == total)
            entries = kinds(name)
            assert entries["run"] == total
            assert not entries.keys() & {"set back", "refusal", "not shown"}

"""A party that ends amid a match ends the run at the other one, and nothing else there."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import stopping_matchers
from matching import matched, table
from mplang_http import LocalCluster
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import RunError

BANK, SHOP = [f"id {i}" for i in range(30)], [f"id {i}" for i in range(15, 45)]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    data = {}
    for party, ids in (("bank", BANK), ("shop", SHOP)):
        pa.parquet.write_table(table(ids), tmp_path / f"{party}.parquet")
        columns = {"id": "string", "row": "int64"}
        source = f"parquet:{tmp_path}/{party}.parquet"
        data[party] = {"keys": {"source": source, "columns": columns}}
    with LocalCluster(
        ["bank", "shop"], data=data, log=str(tmp_path), imports=("stopping_matchers",)
    ) as made:
        yield made


class Log:
    """Log of the shop, as far as it was read."""

    def __init__(self, folder):
        self._file, self._read = folder / "shop.log", 0

    def stops(self):
        """Return whether the shop has stopped at its message since it was asked last."""
        found = self._file.read_text().count("MOMENT") if self._file.exists() else 0
        more, self._read = found > self._read, found
        return more


def run_until(moment, protocol, cluster, folder, learn):
    """Kill the shop at a message; return whether it sent that many."""
    log = Log(folder)
    log.stops()
    with mp.connect("http", cluster.spec, mode="launch") as host, ThreadPoolExecutor(1) as pool:
        with mp.with_ctx(host):
            kept = mp.put("P0", np.arange(3.0))
        run = pool.submit(matched, host, protocol=f"{protocol}:{moment}", learn=learn)
        stopped = wait_until(lambda: log.stops() or (run.done() and "ended"), "the message")
        if stopped == "ended":
            run.result()  # fewer messages
            return False
        cluster.signal(stopping_matchers.SHOP, signal.SIGKILL)
        with pytest.raises(RunError, match=r"party 1|shop"):
            run.result()
        np.testing.assert_array_equal(mp.fetch(host, kept), np.arange(3.0))
    cluster.restart(stopping_matchers.SHOP)
    return True


def test_the_other_party_goes_on(cluster, tmp_path):
    assert run_until(3, "ECDH", cluster, tmp_path, "both")
    with mp.connect("http", cluster.spec, mode="launch") as host:
        assert len(matched(host)[0]) == 15


@pytest.mark.long("a worker is killed at each of twenty messages of three protocols")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("learn", ["bank", "shop"])
@pytest.mark.parametrize("protocol", stopping_matchers.PROTOCOLS)
def test_the_other_party_goes_on_whenever_it_was(protocol, learn, cluster, tmp_path):
    moments = range(1, stopping_matchers.MOMENTS + 1)
    reached = [run_until(each, protocol, cluster, tmp_path, learn) for each in moments]
    assert sum(reached) >= 3


REFUSED = {
    "a side has more keys than are declared": {"rows": {"bank": 2, "shop": 50}},
    "the other side has": {"rows": {"bank": 50, "shop": 2}},
    "fewer are in common than are asked for": {"at_least": 16},
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_a_match_that_is_refused_leaves_the_session_as_it_was(cluster, tmp_path, refused):
    with mp.connect("http", cluster.spec, mode="launch") as host:
        for _ in range(3):
            with pytest.raises(RunError, match=r"failed in match\.match at"):
                matched(host, **refused)
            assert len(matched(host)[0]) == 15
    logs = "".join((tmp_path / f"{name}.log").read_text() for name in ("bank", "shop"))
    assert "no link to" not in logs
    assert "Invalid HTTP request" not in logs

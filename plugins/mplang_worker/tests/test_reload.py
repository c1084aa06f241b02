"""Reload of a configuration: SIGHUP and a changed file; all of it counts, or nothing of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from mplang_http import LocalCluster, cluster_status
from mplang_policy.ledger import Ledger
from mplang_testing.waiting import wait_until
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.live_config import check_peers
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import RunError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    names = ["alice", "host", "other"]
    return make_certificates(tmp_path_factory.mktemp("certificates"), names)


CHANGED = "the configuration has changed"


class Owner:
    """Owner of the one worker of a cluster, who edits its file."""

    def __init__(self, cluster, log):
        self.cluster, self.file, self._log = cluster, Path(cluster._path("alice")), log
        self.pid = cluster.workers[0].pid

    @property
    def fields(self):
        return yaml.safe_load(self.file.read_text())

    @property
    def log(self):
        return self._log.read_text()

    def write(self, fields):
        """Write the file anew, as an editor does: another one takes its place."""
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump(fields, sort_keys=False))
        os.replace(new, self.file)

    def change(self, **fields):
        """Change some fields of the file."""
        self.write(self.fields | fields)

    def hang_up(self):
        """Send SIGHUP to the worker and all its processes, as a closed terminal does."""
        os.killpg(self.pid, signal.SIGHUP)

    def status(self, tls=None):
        (row,) = cluster_status(self.cluster.spec, tls or self.cluster.tls)
        return row

    def wait_for(self, text, since):
        wait_until(lambda: text in self.log[since:], text)


@pytest.fixture(scope="module")
def owner(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alice")
    pq.write_table(pa.table({"x": [1, 2, 3]}), folder / "numbers.parquet")
    (folder / "rules.cedar").write_text("permit (principal, action, resource);")
    data = {"numbers": {"source": f"parquet:{folder}/numbers.parquet", "columns": {"x": "int64"}}}
    gate = {"policy": str(folder / "rules.cedar"), "log": str(folder / "gate.db")}
    options = {"coordinators": ("host",), "data": {"alice": data}, "gates": {"alice": gate}}
    with LocalCluster(["alice"], tls=files, log=str(folder), **options) as cluster:
        yield Owner(cluster, folder / "alice.log")


@pytest.fixture(autouse=True)
def as_before(owner):
    """Put back the file, and wait until it counts."""
    before = owner.fields
    yield
    if owner.fields != before:
        counts, since = not refused(owner), len(owner.log)
        owner.write(before)
        owner.hang_up()
        wait_until(lambda: CHANGED in owner.log[since:] if counts else not refused(owner))


def refused(owner):
    return "configuration" in owner.status()["why"]


def connect(owner, tls):
    return mp.connect("http", owner.cluster.spec, tls=tls)


def test_an_analyst_is_added_and_nobody_is_restarted(owner, files):
    """Neither the worker nor the sessions of others; SIGHUP ends no process."""
    with connect(owner, files["host"]) as host:
        with mp.with_ctx(host):
            x = mp.put("P0", np.int64(20))
        with pytest.raises(RunError, match="not among the coordinators"):
            connect(owner, files["other"])
        since = len(owner.log)
        owner.change(coordinators=["host", "other"])
        owner.hang_up()
        owner.wait_for("the configuration has changed: coordinators", since)
        with connect(owner, files["other"]) as other:
            assert mp.fetch(other, mp.evaluate(other, lambda: mp.constant(1)))[0] == 1
        assert mp.fetch(host, mp.evaluate(host, lambda x: x + 1, x)) == 21
    assert owner.cluster.workers[0].poll() is None
    assert owner.status()["crashes"] == 0


def test_a_changed_file_counts_without_a_signal(owner, files):
    """And the sessions of a coordinator that was removed end."""
    owner.change(coordinators=["host", "other"])
    wait_until(lambda: owner.status(files["other"])["failures"])
    with connect(owner, files["other"]) as other:
        mp.evaluate(other, lambda: mp.constant(1))
        since = len(owner.log)
        owner.change(coordinators=["host"])
        owner.wait_for("other is no longer a coordinator here", since)
        with pytest.raises(RunError):
            mp.evaluate(other, lambda: mp.constant(1))
    assert owner.status()["failures"]


def test_data_sets_and_readers_are_added_and_taken_away(owner, files):
    """Programs read them without a restart, and no longer once they are taken away."""
    numbers, since = owner.fields["data"]["numbers"], len(owner.log)
    owner.change(data={"numbers": numbers, "more": numbers})
    owner.wait_for("the configuration has changed: data", since)
    with connect(owner, files["host"]) as host:

        def rows():
            return mp.dataset("alice", "more")

        assert mp.fetch(host, mp.evaluate(host, rows)).num_rows == 3
        since = len(owner.log)
        owner.change(data={"numbers": numbers, "more": numbers | {"readers": []}})
        owner.wait_for("the configuration has changed: data", since)
        with pytest.raises(RunError, match="more"):
            mp.evaluate(host, rows)


@pytest.mark.parametrize(
    ("change", "line", "why"),
    [
        ({"data": {"gone": {"source": "parquet:/gone", "columns": {"x": "int64"}}}}, "  gone:", ""),
        ({"quotas": {"jobs": -1}}, "  jobs: -1", "greater than 0"),
        ({"port": 1}, "port: 1", "it takes effect after a restart only"),
        ({"sink": None}, "sink: null", "it takes effect after a restart only"),
        ({"gate": None}, "gate: null", "it takes effect after a restart only"),
        ({"colour": "red"}, "colour: red", "no such field"),
    ],
)
def test_what_is_wrong_is_refused_whole_with_its_line(owner, files, change, line, why):
    """The analyst that stands beside it does not count, the old stays, and `status` says so."""
    since = len(owner.log)
    owner.change(coordinators=["host", "other"], **change)
    number = owner.file.read_text().splitlines().index(line) + 1
    owner.hang_up()
    owner.wait_for(f"alice.yaml:{number}: ", since)
    assert why in owner.log[since:]
    assert "its changed configuration is wrong" in owner.status()["why"]
    with pytest.raises(RunError, match="not among the coordinators"):
        connect(owner, files["other"])


def test_a_session_with_a_peer_that_was_removed_runs_nothing_new():
    """What runs goes on; a party of the session that is a peer still, or that asks, is none."""
    config = WorkerConfig(name="alice", peers={"bob": "http://127.0.0.1:1"})
    session = SimpleNamespace(parties=["alice", "bob"])
    check_peers(session, config)
    config.adopt(WorkerConfig(name="alice", peers={"carol": "http://127.0.0.1:2"}))
    with pytest.raises(RequestError, match="bob is no longer a peer of alice"):
        check_peers(session, config)


def test_budgets_and_rules_count_and_are_on_record(owner, files):
    """Of a budget of a data set that is not there all is refused; that it changed is on record."""
    gate, since = owner.fields["gate"], len(owner.log)
    owner.change(gate=gate | {"budgets": {"gone": {"epsilon": 1.0}}})
    owner.wait_for("field 'gate.budgets.gone': there is no data set", since)
    since = len(owner.log)
    owner.change(gate=gate | {"budgets": {"numbers": {"epsilon": 1.0}}})
    owner.wait_for("the configuration has changed: gate", since)
    entries = Ledger(gate["log"], read_only=True).entries()
    fields = [each.body["changed"] for each in entries if each.kind == "configuration"]
    assert fields[-1] == ["gate"]

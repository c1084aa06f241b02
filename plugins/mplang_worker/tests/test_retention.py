"""Retention: a worker deletes what has expired by its owner's rules, and has it on record."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
import typer
import yaml
from mplang_http import LocalCluster
from mplang_policy import Ledger
from mplang_policy.verification import mistakes
from mplang_testing.waiting import wait_until
from mplang_worker.base.config import WorkerConfig
from mplang_worker.cli import retention as command
from mplang_worker.cli.retention import retention
from mplang_worker.front.kept_values import expire_sessions
from mplang_worker.front.retention import RetentionSweep
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError

DAY = 86_400.0
GONE = (AdmissionError, PartyError)
PERMIT_ALL = "permit (principal, action, resource);"


class KeepingCluster(LocalCluster):
    """Cluster whose sinks have a rule of retention."""

    def _sink_of(self, name):
        return {**super()._sink_of(name), "retention": {"stored": "30d"}}


def store_total():
    mp.store(mp.put("P0", np.float64(7)), "total")


def load_total():
    return mp.load("P0", "total", type=mp.TensorType("f64"))


def test_stored_values_and_the_log_expire_at_a_worker(tmp_path):
    (tmp_path / "rules.cedar").write_text(PERMIT_ALL)
    log = tmp_path / "gate.db"
    with closing(Ledger(log, lambda: time.time() - 40 * DAY)) as old, old.writing() as writing:
        body = {"name": "secret name", "rows": writing.add_detail(["secret row"])}
        writing.add("refusal", body)
    gate = {"policy": str(tmp_path / "rules.cedar"), "log": str(log)}
    options = {"sink": tmp_path, "mode": "production"}
    with (
        LocalCluster(["alice"], gates={"alice": gate}, **options) as cluster,
        mp.connect("http", cluster.spec) as host,
    ):
        mp.evaluate(host, store_total)
    (entry,) = tmp_path.glob("sinks/alice/local/total/current/entry.json")
    fields = json.loads(entry.read_text())
    fields["entry"]["time"] -= 31 * DAY
    entry.write_text(json.dumps(fields))
    assert b"secret" in log.read_bytes()

    kept = {**gate, "retention": {"details": "10d", "entries": "30d"}}
    options["retention"] = {"kept": "7d"}
    with KeepingCluster(["alice"], gates={"alice": kept}, **options) as cluster:
        wait_until(lambda: not entry.exists())
        wait_until(lambda: b"secret" not in log.read_bytes())
        with mp.connect("http", cluster.spec) as host, pytest.raises(GONE, match="total"):
            mp.evaluate(host, load_total)
    with closing(Ledger(log, read_only=True)) as ledger:
        assert [*mistakes(ledger.entries(), ledger.detail)] == []
        expired = [each.body for each in ledger.entries() if each.kind == "expired"]
    assert {each["what"] for each in expired} == {"stored values", "details", "entries"}
    (stored,) = (each for each in expired if each["what"] == "stored values")
    assert stored["values"][0].startswith("local/total, version ")


def test_a_session_ends_with_what_it_keeps_and_that_is_on_record():
    config = WorkerConfig(name="alice", retention={"kept": "7d"})
    gate, ended = GateOfTests(), []
    session = SimpleNamespace(key=("host", "s"), link="s-1", opened=100.0, ending=False)
    engines = SimpleNamespace(
        sessions=[session],
        gate=SimpleNamespace(provider=gate),
        end_soon=lambda each, why: ended.append((len(gate.noted), each, why)),
    )
    asyncio.run(expire_sessions(config, engines, 100.0 + 6.9 * DAY))
    assert ended == []
    asyncio.run(expire_sessions(config, engines, 100.0 + 7.1 * DAY))
    ((noted, each, why),) = ended
    assert (noted, each) == (1, session)  # it is on record before
    assert "alice keeps values of a session for 7d (retention.kept); open another one" in why
    ((subject, about),) = gate.noted
    assert (subject, about["session"], about["coordinator"]) == ("expired", "s-1", "host")

    def note(subject, about):
        raise AdmissionError("the log is full")

    gate.note = note
    asyncio.run(expire_sessions(config, engines, 100 * DAY))
    assert len(ended) == 1


class GateOfTests:
    """Gate that notes what it is told."""

    def __init__(self):
        self.noted = []

    def note(self, subject, about):
        self.noted.append((subject, about))


class Shelf:
    """Provider with one thing that expires after a day."""

    def __init__(self, broken=False):
        self.left, self.broken = 1, broken

    def expire(self, now, note):
        if self.left and now > DAY:
            note({"what": "things", "rule": "shelf: 1d", "count": self.left})
            if self.broken:
                raise OSError("the disk is gone")
            self.left = 0


def test_a_sweep_goes_by_its_clock_and_what_fails_stops_nothing_else(caplog):
    gate, shelf, broken, now = GateOfTests(), Shelf(), Shelf(broken=True), [0.0]
    providers = {"broken": broken, "none": object(), "shelf": shelf}
    sweep = RetentionSweep(providers, gate, lambda: now[0])
    sweep.sweep()
    assert gate.noted == []
    now[0] = 2 * DAY
    with caplog.at_level(logging.INFO):
        sweep.sweep()
    assert (shelf.left, broken.left) == (0, 1)
    assert [subject for subject, _ in gate.noted] == ["expired", "expired"]
    assert "of section broken is not all deleted: the disk is gone" in caplog.text
    assert "1 things expire by the rule shelf: 1d" in caplog.text


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    app.command()(retention)

    def told(*args, **fields):
        path = tmp_path / "worker.yaml"
        path.write_text(yaml.safe_dump({"name": "alice", **fields}))
        done = CliRunner().invoke(app, ["-c", str(path), *args])
        assert done.exit_code == 0, done.output
        return done.output

    return told


def test_the_command_lists_the_rules_and_what_they_would_delete(run, tmp_path):
    (tmp_path / "rules.cedar").write_text(PERMIT_ALL)
    with closing(Ledger(tmp_path / "gate.db", lambda: 30 * DAY)) as ledger:
        ledger.add("put", {"value": "x"})
    gate = {"policy": "rules.cedar", "log": "gate.db"}
    assert "has no rule of retention" in run(gate=gate)
    rules = {"gate": {**gate, "retention": {"entries": "365d"}}}
    rules["retention"] = {"kept": "7d"}
    rules["sink"] = {"folder": "sink", "retention": {"stored": "90d"}}
    assert run(**rules).splitlines() == [
        "retention.kept: 7d",
        "sink.retention.stored: 90d", "gate.retention.details: 365d", "gate.retention.entries: 365d"
    ]  # fmt: skip
    before = (tmp_path / "gate.db").read_bytes()
    listed = run("--what-if", **rules)
    assert listed.splitlines() == [
        "retention.kept: no worker answers at a control socket, so no session is listed",
        "now               gate.retention.entries  1 entries of the log, 1 to 1",
    ]
    assert (tmp_path / "gate.db").read_bytes() == before
    rules["gate"]["retention"]["entries"] = "90000d"
    assert "2216-0" in run("--what-if", **rules)
    (tmp_path / "gate.db").unlink()
    assert run("--what-if", **rules).endswith("there is nothing that could expire\n")
    assert not (tmp_path / "gate.db").exists()


def test_sessions_that_will_expire_are_listed_by_the_worker_that_runs(run, monkeypatch):
    rows = [{"session": "s", "coordinator": "ann", "age": 8 * DAY}]
    rows.append({"session": "t", "coordinator": "bob", "age": 1.0})
    client = SimpleNamespace(is_at_hand=True, request=lambda *asked: rows)
    monkeypatch.setattr(command, "control_client", lambda config, path: client)
    listed = run("--what-if", retention={"kept": "7d"}, control={"path": "c/s"}).splitlines()
    assert listed[0].split("  ")[0] == "now"
    assert listed[0].endswith("retention.kept  session s of ann, with the values that it keeps")
    assert listed[1].endswith("retention.kept  session t of bob, with the values that it keeps")

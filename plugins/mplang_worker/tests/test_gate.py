"""The owners' rules on live workers: what they refuse does not run, and all of it is on record."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from contextlib import closing
from pathlib import Path

import greedy_ops
import numpy as np
import pytest
from http_raw import RawWorker
from mplang_cli.cli import app
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_http.wire.versions import versions
from mplang_policy import Ledger
from mplang_policy.verification import mistakes
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, pause, wait_until
from mplang_worker.base.config import WorkerConfig
from processes import processes_of_sessions
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError

NAMES = ["bank", "shop", "clinic"]
PERMIT_ALL = "permit (principal, action, resource);\n"
BANK = (
    PERMIT_ALL
    + """
@id("no pay to hosts") forbid (principal, action == Action::"fetch", resource)
when { context.columns.contains(Column::"pay") };
@id("no puts") forbid (principal, action == Action::"put", resource);
@id("not kept by others") forbid (principal, action == Action::"store", resource)
unless { resource == Party::"bank" };
"""
)


class Workers:
    """Three workers with gates, and their logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        np.save(folder / "pay.npy", np.array([1.0, 2.0, 4.0]))
        np.save(folder / "sales.npy", np.array([8.0, 16.0, 32.0]))
        kind = {"array": "f64[3]"}
        data = {
            "bank": {
                "pay": {"source": f"npy:{folder}/pay.npy", **kind},
                "secret": {"source": f"npy:{folder}/pay.npy", **kind},
            },
            "shop": {"sales": {"source": f"npy:{folder}/sales.npy", **kind}},
        }
        for name in NAMES:
            self.write(name, BANK if name == "bank" else PERMIT_ALL)
        gates = {
            name: {"policy": str(folder / f"{name}.cedar"), "log": str(folder / f"{name}.db")}
            for name in NAMES
        }
        self.gates = gates
        imports = ("mplang_testing.dialect", "greedy_ops")
        self.cluster = LocalCluster(
            NAMES, data=data, gates=gates, mode="production", imports=imports, sink=folder
        )

    def write(self, name: str, rules: str) -> None:
        """Write the rules of a party."""
        (self.folder / f"{name}.cedar").write_text(rules)

    def last_refusal(self, name: str) -> str:
        """Return why a party has refused something last."""
        refusals = [each for each in self.log(name) if each.kind == "refusal"]
        return refusals[-1].body["why"] if refusals else ""

    def log(self, name: str):
        """Return the entries of a party's log."""
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def settled(self, name: str):
        """Return them once the ends of all runs are on record: a result is there before."""

        def ended():
            kinds = [each.kind for each in self.log(name)]
            return kinds.count("run") == kinds.count("end")

        wait_until(ended, f"the end of all runs of {name}")
        return self.log(name)


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        made = Workers(folder)
        with made.cluster:
            yield made


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.cluster.spec) as made:
        yield made


def refused(host, program, *args) -> str:
    with pytest.raises(PartyError) as found:
        mp.evaluate(host, program, *args)
    assert "observable" not in str(found.value)  # no other party ran anything, either
    return str(found.value)


def sales():
    return mp.dataset("shop", "sales")


def pay():
    return mp.dataset("bank", "pay")


def test_what_rules_permit_runs_and_is_on_record_at_each_party(workers, host):
    before = {name: len(workers.settled(name)) for name in NAMES}
    found = mp.fetch(host, mp.evaluate(host, sales))
    np.testing.assert_array_equal(found, [8.0, 16.0, 32.0])
    for name in NAMES:
        kinds = [each.kind for each in workers.log(name)[before[name] :]]
        assert kinds[0] == "run"
        assert kinds.count("fetch") == (name == "shop")
    (fetch,) = (each for each in workers.log("shop")[before["shop"] :] if each.kind == "fetch")
    assert fetch.body["coordinator"] == "local"
    assert fetch.body["bytes"] > 24


def test_what_rules_forbid_is_refused_with_rule_and_line(workers, host):
    workers.settled("bank")
    told = refused(host, pay)
    assert "bank refuses that the host, local, gets plain f64[3] (result)" in told
    assert 'it is forbidden by "no pay to hosts" (bank.cedar:3)' in told
    assert workers.log("bank")[-1].kind == "refusal"
    assert "no pay to hosts" in workers.last_refusal("bank")


def test_a_refusal_is_data_and_what_is_on_record(workers, host):
    workers.settled("bank")
    with pytest.raises(PartyError) as found:
        mp.evaluate(host, pay)
    (refusal,) = found.value.refusals
    (row,) = workers.log("bank")[-1].body["refused"]
    assert (refusal.party, refusal.code, refusal.reason) == (
        "bank", "forbidden", 'it is forbidden by "no pay to hosts" (bank.cedar:3)'
    )  # fmt: skip
    assert refusal.rules == tuple(row["rules"]) == ('"no pay to hosts" (bank.cedar:3)',)
    assert (refusal.code, refusal.what) == (row["code"], row["what"]) == ("forbidden", "result")
    assert refusal.columns == tuple(row["columns"]) == ("pay",)
    assert (refusal.action, refusal.resource) == (row["action"], row["resource"])
    assert refusal.location == row["line"]
    assert re.fullmatch(r"test_gate\.py:\d+", refusal.location)
    assert (found.value.op, found.value.location) == (None, refusal.location)
    assert isinstance(found.value.__cause__, AdmissionError)


def test_a_value_of_before_is_still_the_data_of_whose_it_was(workers, host):
    def give():
        return mp.keep(mp.put("P1", pay()))

    def tell(x):
        return mp.invoke(dialect.add, x, x)

    kept = mp.evaluate(host, give)
    told = refused(host, tell, kept)
    assert "bank refuses that the host, local, gets" in told
    assert "made of pay" in told


def test_what_is_made_of_it_is_not_left_with_another_party(workers, host):
    def give():
        mp.store(mp.put("P1", pay()), "pay")

    told = refused(host, give)
    assert "bank refuses to have pay stored as 'pay' by shop" in told
    assert '"not kept by others"' in told


def test_a_value_is_put_where_rules_permit_it_only(workers, host):
    for name in NAMES:
        workers.settled(name)
    with mp.with_ctx(host):
        mp.put("P1", np.float64(1))
        with pytest.raises(mp.MPLangError, match="bank refuses a value that is put") as found:
            mp.put("P0", np.float64(1))
    (refusal,) = found.value.refusals
    assert (refusal.party, refusal.action, refusal.rules) == (
        "bank", "put", ('"no puts" (bank.cedar:5)',)
    )  # fmt: skip
    assert workers.log("bank")[-1].kind == "refusal"
    assert workers.log("shop")[-1].kind == "put"


def test_an_op_reads_no_data_set_that_its_program_does_not_name(workers, host):
    """Its kernel asks for one that the gate has not seen in the program."""

    def hidden():
        there = mp.put("P0", mp.dataset("shop", "sales"))
        return mp.device("P0")(greedy_ops.read_other)(there)

    def named():
        return mp.keep(mp.dataset("bank", "secret")), hidden()

    told = refused(host, hidden)
    assert "party bank failed in greedy.read_other" in told
    _, found = mp.evaluate(host, named)  # so it is not the op that fails
    np.testing.assert_array_equal(mp.fetch(host, found), [15.0, 23.0, 39.0])


def test_a_broken_rule_shuts_the_gate_until_it_is_mended(workers, host):
    workers.write("shop", PERMIT_ALL + "forbid (principal, action, resource) when { x };")
    try:
        told = refused(host, sales)
        assert "shop runs nothing until its owner has repaired its rules" in told
        rows = {row["name"]: row for row in cluster_status(workers.cluster.spec)}
        assert [rows[name]["gate"] for name in NAMES] == ["open", "shut", "open"]
        assert [bool(rows[name]["why"]) for name in NAMES] == [False, True, False]
        answer = RawWorker(workers.cluster, NAMES.index("shop")).ask("GET", "/ready")
        assert answer.status == 503
        assert "shop.cedar" not in told
        assert "shop.cedar: line 2" in workers.last_refusal("shop")
    finally:
        workers.write("shop", PERMIT_ALL)
    mp.evaluate(host, sales)
    assert {row["gate"] for row in cluster_status(workers.cluster.spec)} == {"open"}


def test_the_host_is_told_what_each_party_refuses(workers, host):
    """An analyst asks each owner once, and not one after the other."""
    forbid = '@id("no sales") forbid (principal, action == Action::"fetch", resource)\n'
    workers.write(
        "shop", PERMIT_ALL + forbid + 'when { context.columns.contains(Column::"sales") };'
    )
    try:
        with pytest.raises(PartyError) as found:
            mp.evaluate(host, lambda: (pay(), sales()))
    finally:
        workers.write("shop", PERMIT_ALL)
    assert {each.party for each in found.value.refusals} == {"bank", "shop"}
    for text in ('by "no pay to hosts" (bank.cedar:3)', 'by "no sales" (shop.cedar:2)'):
        assert text in str(found.value)
    assert str(found.value).count("refuses it, too: ") == 1


def test_a_run_is_not_swapped_for_another_one_after_it_was_shown(workers, host):
    """What was submitted first under a name is what is decided on, and what runs."""
    mp.evaluate(host, sales)
    raw = RawWorker(workers.cluster, 1)
    path = f"/v1/sessions/{host.session}/jobs"
    answer = raw.ask("POST", path + f"?run={host.session}-7", b"\x80")
    assert answer.status == 400


def test_a_value_whose_label_is_forgotten_is_not_told(workers, host):
    """Labels of so many results are kept; one that is not known could be anybody's."""

    def give():
        return mp.keep(mp.put("P1", pay()))

    def many():
        found = mp.dataset("shop", "sales")
        return [found] * 10_001

    def tell(x):
        return mp.invoke(dialect.add, x, x)

    kept = mp.evaluate(host, give)
    mp.evaluate(host, many)
    refused(host, tell, kept)
    for name in ("bank", "shop"):  # the host is told as soon as one of them refuses
        wait_until(lambda name=name: "are no longer known" in workers.last_refusal(name))


def test_no_process_stays_of_sessions_that_end_while_they_start(workers, host):
    """Their checkers and MPC processes end, whenever the session does."""

    def processes():
        return len(processes_of_sessions(workers.cluster.workers[0].pid))

    wait_until(lambda: processes() == 3, "engine, MPC process and checker of the host's session")
    raw = RawWorker(workers.cluster, 0)
    addresses = [each.address for each in workers.cluster.spec.nodes]
    parties = [{"name": n, "address": a} for n, a in zip(NAMES, addresses, strict=True)]
    for i in range(12):
        body = {"rank": 0, "parties": parties, "versions": versions(), "native": ["spu"]}
        opening = threading.Thread(
            target=raw.ask, args=("PUT", f"/v1/sessions/early{i}", json.dumps(body).encode())
        )
        opening.start()
        pause(0.002 * i, "the session is closed at another step of its start")
        raw.ask("DELETE", f"/v1/sessions/early{i}")
        opening.join()
        raw.ask("DELETE", f"/v1/sessions/early{i}")
    wait_until(lambda: processes() == 3, "the end of all that was started")


def test_the_end_of_a_run_that_was_not_is_not_on_record(workers, host):
    mp.evaluate(host, sales)
    before = len(workers.settled("bank"))
    raw = RawWorker(workers.cluster, 0)
    for i in range(50, 60):
        raw.ask("DELETE", f"/v1/sessions/{host.session}/jobs/{host.session}-{i}")
    mp.evaluate(host, sales)
    assert [each.kind for each in workers.settled("bank")[before:]] == ["run", "end"]


def test_each_party_knows_the_last_entries_of_the_others(workers, host):
    mp.evaluate(host, sales)
    with closing(Ledger(workers.folder / "bank.db", read_only=True)) as ledger:
        heads = ledger.heads()
    assert sorted(heads) == ["clinic", "shop"]
    found = {each.number: each.hash for each in workers.log("shop")}
    assert found[heads["shop"].number] == heads["shop"].hash
    for name in NAMES:
        with closing(Ledger(workers.folder / f"{name}.db", read_only=True)) as ledger:
            assert list(mistakes(ledger.entries(), ledger.detail)) == []


def forget(config: Path, peer: str) -> None:
    """Have an owner forget what the log of a peer was."""
    done = CliRunner().invoke(app, ["audit", "forget", peer, "-c", str(config)])
    assert done.exit_code == 0, done.output


def test_a_party_whose_log_was_set_back_is_found_by_what_a_peer_remembers(tmp_path, monkeypatch):
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # of the host, which forgets, too
    made = Workers(tmp_path)
    with made.cluster as cluster:
        with mp.connect("http", cluster.spec) as host:
            mp.evaluate(host, sales)
        shutil.copy(tmp_path / "shop.db", tmp_path / "backup.db")
        with mp.connect("http", cluster.spec) as host:
            mp.evaluate(host, sales)
            mp.evaluate(host, sales)
        cluster.signal(1, signal.SIGKILL)
        cluster.workers[1].wait(DEADLINE)
        for each in tmp_path.glob("shop.db-*"):
            each.unlink()
        shutil.copy(tmp_path / "backup.db", tmp_path / "shop.db")
        cluster.restart(1)
        with mp.connect("http", cluster.spec) as host:
            for _ in range(3):  # until the owner has looked into it
                told = refused(host, sales)
                assert "remembers another log of shop" in told
        set_back = "which is not there: the log was set back"
        wait_until(lambda: set_back in made.last_refusal("shop"))  # others may refuse before it
        for name in ("bank", "clinic"):  # whose owners have heard why
            config = {"name": name, "gate": made.gates[name]}
            (tmp_path / f"{name}.yaml").write_text(json.dumps(config))
            made.settled(name)
            forget(tmp_path / f"{name}.yaml", "shop")
            assert made.log(name)[-1].kind == "forgotten"
        done = CliRunner().invoke(app, ["receipts", "--forget", "shop"])
        assert done.exit_code == 0, done.output
        with mp.connect("http", cluster.spec) as host:
            mp.evaluate(host, sales)


def test_paths_of_a_gate_are_relative_to_the_file_wherever_that_is_named_from(
    tmp_path, monkeypatch
):
    text = "name: bank\ngate: {policy: rules, log: gate.db, approvers: {ann: ann.pub}}\n"
    (tmp_path / "worker.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    for path in ("worker.yaml", "./worker.yaml", str(tmp_path / "worker.yaml")):
        gate = WorkerConfig.from_yaml(path).gate
        assert gate["policy"] == str(tmp_path / "rules")
        assert gate["log"] == str(tmp_path / "gate.db")
        assert gate["approvers"] == {"ann": str(tmp_path / "ann.pub")}


def test_a_run_that_does_not_begin_is_an_attempt_and_no_refusal(workers, host):
    """What it loads is gone; it is followed, as another party may have run it."""

    def keep():
        mp.store(sales(), "gone")

    def again():
        return mp.load("shop", "gone")

    mp.evaluate(host, keep)
    np.testing.assert_array_equal(mp.fetch(host, mp.evaluate(host, again)), [8.0, 16.0, 32.0])
    before = {name: len(workers.settled(name)) for name in NAMES}
    shutil.rmtree(workers.folder / "sinks" / "shop" / "local" / "gone")
    assert "nothing is stored as 'gone'" in refused(host, again)
    for name in NAMES:
        wait_until(lambda name=name: len(workers.log(name)) > before[name], "the attempt on record")
        (attempt,) = workers.log(name)[before[name] :]
        assert (attempt.kind, attempt.body["name"]) == ("attempt", "again")
        assert attempt.body["why"].startswith("it has not begun here: ")
    mp.evaluate(host, sales)

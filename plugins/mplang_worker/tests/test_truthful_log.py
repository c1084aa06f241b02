"""Logs of live workers with TLS: nobody innocent is accused, and no run is taken back unnoticed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_http.coordinator.receipts import Receipts
from mplang_policy import Ledger
from mplang_policy.peer_logs import PeerLogs
from mplang_policy.verification import mistakes
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError

NAMES = ["bank", "shop"]
HOSTS = ["host", *(f"host{i}" for i in range(1, 20))]
BUDGET = 1000.0
DISHONEST = """
from mplang_policy.witness import Witness

Witness.missing = lambda self, seen: None
"""


def noisy():
    people = mp.dataset("bank", "people")
    return mp.dp.mean(people, "pay", low=0, high=2, unit="id", epsilon=0.5)


def mean():
    return mp.device("P0")(lambda t: t.agg(m=t.pay.mean()))(mp.dataset("bank", "people"))


class Parties:
    """A bank and a shop with gates and TLS, and coordinators."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        people = pd.DataFrame({"id": range(50), "pay": [1.0] * 50})
        people.to_csv(folder / "people.csv", index=False)
        (folder / "rules.cedar").write_text("permit (principal, action, resource);")
        columns = {"id": "int64", "pay": "float64"}
        source = {"source": f"csv:{folder}/people.csv", "columns": columns, "unit": "id"}
        gates = {
            name: {"policy": f"{folder}/rules.cedar", "log": f"{folder}/{name}.db"}
            for name in NAMES
        }
        gates["bank"]["budgets"] = {"people": {"epsilon": BUDGET}}
        self.files = make_certificates(folder / "keys", [*NAMES, *HOSTS])
        self.cluster = LocalCluster(
            NAMES, tls=self.files, coordinators=HOSTS, gates=gates, mode="production",
            data={"bank": {"people": {**source, "readers": HOSTS}}},
            start_timeout=120,
        )  # fmt: skip

    def connect(self, who: str = "host", **options):
        return mp.connect("http", self.cluster.spec, tls=self.files[who], **options)

    def run(self, program=noisy, who: str = "host") -> None:
        with self.connect(who) as host:
            mp.fetch(host, mp.evaluate(host, program))
        self.settled()

    def log(self, name: str):
        with closing(Ledger(self.folder / f"{name}.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def settled(self) -> None:
        """Wait until all ends are on record, and with them what each knows of the other."""
        for name, other in (NAMES, NAMES[::-1]):
            wait_until(lambda name=name: self.kinds(name)["run"] == self.kinds(name)["end"], name)
            with closing(Ledger(self.folder / f"{other}.db", read_only=True)) as ledger:
                last = [e.number for e in self.log(name) if e.kind == "run"][-1:]
                known = lambda: ledger.heads()[name].number  # noqa: B023, E731
                wait_until(lambda: not last or known() >= last[0], f"{other} knows {name}'s log")  # noqa: B023

    def kinds(self, name: str) -> Counter[str]:
        return Counter(each.kind for each in self.log(name))

    def save(self, name: str, to: str) -> None:
        backup(self.folder / f"{name}.db", self.folder / to)

    def restore(self, name: str, of: str) -> None:
        """Have a worker end, and start with a backup of its log."""
        log = self.folder / f"{name}.db"
        restore(self.cluster, NAMES.index(name), log, self.folder / of)


def ready(cluster: LocalCluster) -> tuple[int, object]:
    """Return what a probe of the first worker is told."""
    try:
        with urlopen(f"{cluster.spec.nodes[0].address}/ready") as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def backup(log: Path, to: Path) -> None:
    with closing(sqlite3.connect(log)) as here, closing(sqlite3.connect(to)) as there:
        here.backup(there)


def restore(cluster: LocalCluster, rank: int, log: Path, of: Path) -> None:
    cluster.signal(rank, signal.SIGKILL)
    cluster.workers[rank].wait(DEADLINE)
    for each in log.parent.glob(f"{log.name}-*"):
        each.unlink()
    log.write_bytes(of.read_bytes())
    cluster.restart(rank)


@pytest.fixture(scope="module")
def parties(tmp_path_factory):
    with running(tmp_path_factory.mktemp("parties")) as made:
        yield made


@pytest.fixture
def others(tmp_path):
    with running(tmp_path) as made:
        yield made


@contextmanager
def running(folder: Path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        made = Parties(folder)
        with made.cluster:
            yield made


@contextmanager
def dishonest(folder: Path):
    """Have workers that start within run a gate that goes on whatever its peers remember."""
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "sitecustomize.py").write_text(DISHONEST)
    paths = [str(folder / "code"), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


def refused(parties: Parties, program=noisy, who: str = "host") -> str:
    with parties.connect(who) as host, pytest.raises(PartyError) as found:
        mp.evaluate(host, program)
    return str(found.value)


def run_at_once(parties: Parties, hosts: int, runs: int, **options) -> list[str]:
    """Have hosts run programs at once; return what fails."""
    failures: list[str] = []

    def run(who: str) -> None:
        try:
            with parties.connect(who, **options) as host:
                for _ in range(runs):
                    mp.fetch(host, mp.evaluate(host, mean))
        except MPLangError as error:
            failures.append(f"{who}: {error}")

    threads = [threading.Thread(target=run, args=[who]) for who in HOSTS[:hosts]]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return failures


def nobody_is_accused(parties: Parties, runs: int) -> None:
    for name in NAMES:
        wait_until(lambda name=name: parties.kinds(name)["end"] == runs, f"all ends at {name}")
        kinds = parties.kinds(name)
        assert (kinds["run"], kinds["set back"], kinds["not shown"]) == (runs, 0, 0)
        with closing(Ledger(parties.folder / f"{name}.db", read_only=True)) as ledger:
            assert list(mistakes(ledger.entries(), ledger.detail)) == []


def test_hosts_at_once_accuse_nobody(parties):
    assert run_at_once(parties, 4, 6, patience=60) == []
    nobody_is_accused(parties, 4 * 6)


@pytest.mark.long("twenty coordinators at once, two hundred runs")
@pytest.mark.timeout(900)
def test_twenty_coordinators_at_once_accuse_nobody(others):
    assert run_at_once(others, 20, 10, patience=120) == []
    nobody_is_accused(others, 200)


def test_what_decides_is_on_record_before_the_first_run(parties):
    """The start, the configuration, the rules and the certificates; and another certificate."""
    wait_until(lambda: parties.kinds("bank")["certificates"] == 1, "the certificates are on record")
    first = [each.kind for each in parties.log("bank")][:4]
    assert sorted(first) == ["certificates", "configuration", "rules", "start"]
    other = make_certificates(parties.folder / "other", ["bank"])["bank"].ca
    with open(parties.files["bank"].ca, "a", encoding="utf-8") as file:  # one more is believed
        file.write(Path(other).read_text(encoding="utf-8"))
    wait_until(lambda: parties.kinds("bank")["certificates"] == 2, "the change is on record")


def test_the_last_run_is_not_taken_back(parties):
    """Not its entry, and not what it has used up; whoever comes next, and whatever code runs."""
    parties.run()
    parties.save("bank", "backup.db")
    before = parties.kinds("bank")["run"]
    parties.run()
    parties.restore("bank", "backup.db")
    for who in ("host", "host1"):
        assert "another log of bank" in refused(parties, who=who)
    bank, shop = cluster_status(parties.cluster.spec, parties.files["host"])
    assert "its log was set back: host remembers more of it (run host:" in bank["why"]
    assert "log was set back: another coordinator remembers more of it;" in bank["why"]
    assert shop["why"] == ""
    whys = [each.body["why"] for each in parties.log("bank") if each.kind == "refusal"]
    assert any(why.endswith("which is not there: the log was set back") for why in whys)
    assert parties.kinds("bank")["run"] == before
    assert parties.kinds("shop")["set back"] == 0
    with dishonest(parties.folder):
        parties.restore("bank", "backup.db")
    with parties.connect("host1") as host:
        mp.evaluate(host, noisy)
    wait_until(lambda: parties.kinds("shop")["set back"], "the shop tells it with that run")
    entry = next(each for each in parties.log("shop") if each.kind == "set back")
    assert entry.body["peer"] == "bank"
    assert entry.body["before"][0] == entry.body["now"][0]
    assert parties.kinds("bank")["set back"] == 0
    _, shop = cluster_status(parties.cluster.spec, parties.files["host1"])
    assert f"the log of bank was set back (run {entry.body['run']})" in shop["why"]
    with Ledger(parties.folder / "shop.db").writing() as writing:  # as mplang audit forget does
        writing.changed(lambda file: PeerLogs(file).forget("bank"))
    _, shop = cluster_status(parties.cluster.spec, parties.files["host1"])
    assert shop["why"] == ""


def test_an_owner_whom_nobody_else_takes_part_with_takes_back_nothing(tmp_path):
    """The coordinator's receipt is all that remembers it."""
    np.save(tmp_path / "x.npy", np.array([1.0]))
    (tmp_path / "rules.cedar").write_text("permit (principal, action, resource);")
    gate = {"policy": f"{tmp_path}/rules.cedar", "log": f"{tmp_path}/bank.db"}
    data = {"x": {"source": f"npy:{tmp_path}/x.npy", "array": "f64[1]"}}

    def read():
        return mp.dataset("bank", "x")

    def run() -> None:
        with mp.connect("http", cluster.spec) as host:
            mp.fetch(host, mp.evaluate(host, read))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        cluster = LocalCluster(
            ["bank"], gates={"bank": gate}, data={"bank": data}, mode="production"
        )
        with cluster:
            run()
            backup(tmp_path / "bank.db", tmp_path / "backup.db")
            run()
            restore(cluster, 0, tmp_path / "bank.db", tmp_path / "backup.db")
            for _ in range(2):
                with pytest.raises(PartyError, match="local remembers another log of bank"):
                    run()
            assert ready(cluster) == (503, {"state": "lacking", "logs": ["own"]})
            Receipts().forget("bank")  # once the owner has told why
            run()
            assert ready(cluster) == (200, {"state": "ready"})
    with closing(Ledger(tmp_path / "bank.db", read_only=True)) as ledger:
        why = next(each.body["why"] for each in ledger.entries() if each.kind == "refusal")
    assert why.startswith("local remembers entry ")
    assert why.endswith("the log was set back")


@pytest.mark.long("ten backups are restored, twice")
@pytest.mark.timeout(900)
def test_none_of_the_last_ten_runs_is_taken_back(others):
    for number in range(10):
        others.save("bank", f"{number}.db")
        others.run()
    for number in reversed(range(10)):
        others.restore("bank", f"{number}.db")
        assert "another log of bank" in refused(others, who="host1")
        assert others.kinds("bank")["run"] == number
    with dishonest(others.folder):
        for count, number in enumerate(reversed(range(10)), 1):
            others.restore("bank", f"{number}.db")
            with others.connect("host1") as host:
                mp.evaluate(host, noisy)
            wait_until(lambda count=count: others.kinds("shop")["set back"] >= count, "it tells")

"""Workers that are killed amid runs, two hundred times: their logs are whole and count all."""

from __future__ import annotations

import random
import signal
import threading
from contextlib import closing

import pytest
from mplang_http import LocalCluster
from mplang_policy import Ledger
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes
from mplang_testing.waiting import DEADLINE, pause

import mplang_core as mp
from mplang_core.errors import MPLangError

KILLS = 200
RULES = "permit (principal, action, resource);"


def noisy():
    people = mp.dataset("bank", "people")
    return mp.dp.count(people, unit="id", epsilon=0.001)


@pytest.mark.slow("200 times, a worker is killed and starts again")
@pytest.mark.timeout(1800)
def test_workers_that_are_killed_lose_nothing(tmp_path):
    (tmp_path / "people.csv").write_text("id\n" + "\n".join(map(str, range(100))))
    (tmp_path / "rules.cedar").write_text(RULES)
    people = {"source": f"csv:{tmp_path}/people.csv", "columns": {"id": "int64"}, "unit": "id"}
    gates = {
        name: {"policy": str(tmp_path / "rules.cedar"), "log": str(tmp_path / f"{name}.db")}
        for name in ("bank", "shop")
    }
    gates["bank"]["budgets"] = {"people": {"epsilon": 1000}}
    told: list[int] = []
    with LocalCluster(
        ["bank", "shop"], data={"bank": {"people": people}}, gates=gates, mode="production"
    ) as cluster:
        for kill in range(KILLS):
            begun = threading.Event()

            def ask(begun: threading.Event = begun) -> None:
                try:
                    with mp.connect("http", cluster.spec) as host:
                        while True:
                            told.append(int(mp.fetch(host, mp.evaluate(host, noisy))))
                            begun.set()
                except MPLangError:
                    begun.set()

            asking = threading.Thread(target=ask)
            asking.start()
            assert begun.wait(DEADLINE)
            pause(random.random() * 0.2, "the kill comes at a random moment")
            victim = kill % 2
            cluster.signal(victim, signal.SIGKILL)
            cluster.workers[victim].wait(DEADLINE)
            asking.join(DEADLINE)
            assert not asking.is_alive()
            cluster.restart(victim)
    assert len(told) >= KILLS
    for name in gates:
        with closing(Ledger(tmp_path / f"{name}.db", read_only=True)) as ledger:
            runs = sum(each.kind == "run" for each in ledger.entries())
            assert runs >= len(told)
            assert list(mistakes(ledger.entries(), ledger.detail)) == []
            assert list(sums_that_differ(ledger)) == []
            if name == "bank":
                assert ledger.spent()["people", "local"].epsilon == 1000 * runs

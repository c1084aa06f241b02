"""Budgets: what programs may learn of a data set by noise, counted in the ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import yaml
from mplang_analysis import RunRequest
from mplang_policy import Gate, GateConfig, Ledger
from mplang_policy.offline import asked_of
from mplang_policy.sums import sums_that_differ
from policy_testbed import BANK, CATALOGUE, CLUSTER, NAMES, PERMIT_ALL, names_of_bank, program_of
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.ext import AdmissionError, ConfigError


def noisy(epsilon=0.5, delta=0.0, often=1):
    def program():
        people = mp.dataset("bank", "people", ["id"])
        return [mp.dp.count(people, unit="id", epsilon=epsilon, delta=delta) for _ in range(often)]

    return program


@pytest.fixture
def made(tmp_path):
    gates = []

    def make(**budgets):
        (tmp_path / "bank.cedar").write_text(PERMIT_ALL)
        config = GateConfig(policy="bank.cedar", log="gate.db", budgets=budgets)
        gates.append(Gate(config.at(str(tmp_path)), "bank", names_of_bank()))
        return gates[-1]

    yield make
    for each in gates:
        each.close()


def asks(gate, fn, coordinator="analyst") -> str:
    """Return why a program does not begin; nothing if it does."""
    asked = asked_of(program_of(fn), NAMES, "bank", coordinator, "production")
    run = RunRequest("s", "s-0", asked)
    try:
        gate.begin(run, gate.decide(run))
    except AdmissionError as error:
        return str(error)
    return ""


def test_a_budget_is_used_up_and_not_a_part_more(made):
    gate = made(people={"epsilon": 1.0})
    assert asks(gate, noisy(0.1, often=4)) == ""
    assert asks(gate, noisy(0.6)) == ""
    assert "has used up epsilon 1 of epsilon 1" in asks(gate, noisy(1e-6))


def test_one_coordinator_cannot_use_up_what_is_for_all(made):
    gate = made(people={"epsilon": 1.0, "per_coordinator": 0.6})
    assert asks(gate, noisy(0.6)) == ""
    assert "analyst has used up epsilon 0.6 of epsilon 0.6" in asks(gate, noisy(0.1))
    assert asks(gate, noisy(0.3), "other") == ""
    told = asks(gate, noisy(0.2), "other")
    assert "more than all coordinators together have left" in told
    assert "0.6" not in told  # what others have used up is theirs


def test_a_data_set_without_a_budget_has_none(made):
    told = asks(made(), noisy())
    assert told == "bank does not run program: data set people has no budget of epsilon"


def test_a_refusal_quotes_the_name_of_its_program(made, monkeypatch):
    program = noisy()
    program.__name__ = "pay, which is fine. So"
    assert asks(made(), program).startswith('bank does not run "pay, which is fine. So": ')
    monkeypatch.setattr("mplang_policy.requests.MAX_REQUESTS", 1)
    assert asks(made(), program).startswith('"pay, which is fine. So" does too many different')


def test_delta_is_counted_as_well(made):
    gate = made(people={"epsilon": 10.0, "delta": 1e-6})
    assert asks(gate, noisy(0.5, 6e-7)) == ""
    assert "delta 6e-07" in asks(gate, noisy(0.5, 6e-7))
    assert asks(gate, noisy(0.5)) == ""


def test_what_is_refused_uses_up_nothing(made, tmp_path):
    gate = made(people={"epsilon": 1.0})
    assert asks(gate, noisy(0.4, often=3)) != ""
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        assert ledger.spent() == {}
        assert [each.kind for each in ledger.entries()] == ["rules", "refusal"]


def test_a_count_that_was_changed_is_found(made, tmp_path):
    assert asks(made(people={"epsilon": 1.0}), noisy(0.5)) == ""
    with closing(sqlite3.connect(tmp_path / "gate.db")) as file, file:
        file.execute("UPDATE spent SET epsilon = 0")
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        assert list(sums_that_differ(ledger)) == [
            "what analyst has used up of data set people was changed"
        ]
    with closing(sqlite3.connect(tmp_path / "gate.db")) as file, file:
        file.execute("DELETE FROM spent")
        file.execute("INSERT INTO uses VALUES ('0011223344556677', 1)")
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        assert len(list(sums_that_differ(ledger))) == 2


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ({"peple": {"epsilon": 1}}, "there is no data set 'peple' here"),
        ({"people": {"epsilon": 0}}, "budgets.people.epsilon"),
        ({"people": {"epsilon": float("nan")}}, "budgets.people.epsilon"),
        ({"people": {"epsilon": 1, "delta": 1}}, "budgets.people.delta"),
        ({"people": {"epsilon": 1, "eps": 1}}, "budgets.people.eps"),
    ],
)
def test_a_budget_that_is_none_is_refused_at_the_start(made, budgets, message):
    with pytest.raises(ConfigError, match=message):
        made(**budgets)


def test_an_owner_sees_what_was_used_up(made, tmp_path):
    from mplang_cli.cli import app

    asks(made(people={"epsilon": 1.0, "per_coordinator": 0.5}), noisy(0.25))
    gate = {
        "policy": "bank.cedar", "log": "gate.db",
        "budgets": {"people": {"epsilon": 1.0, "per_coordinator": 0.5}},
    }  # fmt: skip
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    done = CliRunner().invoke(app, ["audit", "budgets", "-c", str(tmp_path / "worker.yaml")])
    assert done.output.splitlines() == [
        "people: analyst has used up epsilon 0.25 of epsilon 0.5",
        "people: used up epsilon 0.25 of epsilon 1",
    ]
    done = CliRunner().invoke(app, ["audit", "verify", "-c", str(tmp_path / "worker.yaml")])
    assert done.exit_code == 0


def test_a_review_tells_what_guards_tell_and_noise_uses_up(made, tmp_path):
    from mplang_cli.cli import app

    def both():
        people = mp.dataset("bank", "people", ["id", "pay", "city"])
        wanted = {"by": ["city"], "max_share": 0.25, "pay": ("pay", "mean")}
        mean = mp.guard.aggregate(people, unit="id", k=20, **wanted)
        return mean, mp.dp.count(people, unit="id", epsilon=0.5, delta=1e-6)

    made(people={"epsilon": 1.0, "delta": 1e-5})
    gate = {"policy": "bank.cedar", "log": "gate.db"}
    fields = {**BANK, "data": CATALOGUE["bank"], "gate": gate}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(tmp_path / "both.mpl", mp.compile(both, cluster_spec=CLUSTER))
    config = ["-c", str(tmp_path / "worker.yaml")]
    done = CliRunner().invoke(app, ["review", str(tmp_path / "both.mpl"), *config])
    told = " ".join(done.output.replace("│", " ").split())
    assert "What guards tell" in told
    assert "analyst 20 0.25 mean(people.pay) people.city" in told
    assert "analyst noise any count(people.id)" in told
    assert "people epsilon 0.5, delta 1e-06 test_budgets.py:" in told

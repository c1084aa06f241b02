"""Refusals of live workers: their fields are what is on record, and their advice is true."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from mplang_cli.cli import app
from mplang_http import LocalCluster
from mplang_policy import Ledger
from mplang_testing.waiting import wait_until
from mplang_worker.front.failure_budget import FailureBudget
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import Advice, MPLangError, PartyError, Refusal

NAMES = ["bank", "shop"]
COLUMNS = {"id": "int64", "city": "string", "pay": "float64"}
RULES = """
permit (principal, action == Action::"run", resource);
@id("reads") permit (principal, action == Action::"read", resource)
when { [Column::"people.id", Column::"people.pay"].containsAll(context.columns) };
@id("aggregates") permit (principal, action == Action::"fetch", resource)
when { context.declassifiers.contains("guard") && context.k >= 20 };
@id("noise") permit (principal, action == Action::"fetch", resource)
when { context.declassifiers.contains("dp") };
@id("signed") permit (principal, action == Action::"disclose", resource is Party)
when { context.approved };
@id("failures") permit (principal, action == Action::"disclose", resource is Everyone);
@id("no puts") forbid (principal, action == Action::"put", resource);
"""
OWNERS = ("rule", "exception")


class Bank:
    """A bank with a gate, on live workers; its owner follows advice as it stands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, dict[str, Any]()
        rows = [(i, "Bern", 100.0 + i) for i in range(60)]
        pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(folder / "people.csv", index=False)
        source = {"source": f"csv:{folder}/people.csv", "columns": COLUMNS, "unit": "id"}
        self.data = {"bank": {"people": source}}
        self.begin()
        self.run("mplang approver-key ann.key")
        keys = {"ann": str(folder / "ann.pub")}
        gate = {
            "policy": str(folder / "bank.cedar"), "log": str(folder / "bank.db"),
            "approvals": str(folder / "approvals"), "approvers": keys,
            "budgets": {"people": {"epsilon": 0.5}},
        }  # fmt: skip
        fields = {
            "name": "bank",
            "data": self.data["bank"],
            "gate": gate,
            "peers": dict.fromkeys(NAMES),
        }
        (folder / "worker.yaml").write_text(yaml.safe_dump(fields))
        self.cluster = LocalCluster(NAMES, data=self.data, gates={"bank": gate}, mode="production")

    def begin(self) -> None:
        """Have the rules be those of the beginning, and the program as it was written."""
        (self.folder / "bank.cedar").write_text(RULES)
        self.code = {}

    def entries(self) -> list[Any]:
        with closing(Ledger(self.folder / "bank.db", read_only=True)) as ledger:
            return list(ledger.entries())

    def run(self, line: str) -> None:
        """Run a line of a shell in the owner's folder."""
        _, *words = shlex.split(line)
        names = {"worker.yaml", "ann.key", *(word for word in words if word.endswith(".mpl"))}
        words = ["ann.key" if word == "KEY" else word for word in words]
        words = [str(self.folder / word) if word in names else word for word in words]
        done = CliRunner().invoke(app, words, input="y\n")
        assert done.exit_code == 0, done.output

    def follow(self, advice: Advice, program: Callable[..., Any]) -> None:
        """Change what an advice says."""
        rules = self.folder / "bank.cedar"
        if advice.kind == "rule":
            rules.write_text(f"{rules.read_text()}\n{advice.change}\n")
        elif advice.kind == "exception":
            lines, number = rules.read_text().splitlines(), int(advice.where.partition(":")[2])
            assert lines[number - 1].endswith(";")
            lines[number - 1] = f"{lines[number - 1][:-1]} {advice.change};"
            rules.write_text("\n".join(lines))
        elif advice.kind == "command":
            name = next(word for word in shlex.split(advice.change) if word.endswith(".mpl"))
            with mp.catalogue({"bank": {"people": {"columns": COLUMNS, "unit": "id"}}}):
                compiled = mp.compile(program, cluster_spec=self.cluster.spec)
                mp.artifact.save(self.folder / name, compiled)
            self.run(advice.change)
        elif advice.change.startswith("mp."):
            self.code["code"] = lambda: eval(advice.change, {"mp": mp})
        else:
            self.code |= eval(f"dict({advice.change})")


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    made = Bank(tmp_path_factory.mktemp("bank"))
    with made.cluster:
        yield made


@pytest.fixture
def host(bank):
    bank.begin()
    with mp.connect("http", bank.cluster.spec) as made:
        yield made


def rows(code=None):
    return mp.dataset("bank", "people", ["id", "pay"]) if code is None else code()


def cities(code=None):
    return mp.dataset("bank", "people", ["city", "id"]) if code is None else code()


def small_groups(k=5):
    people = mp.dataset("bank", "people", ["id", "pay"])
    return mp.guard.aggregate(people, unit="id", k=k, pay=("pay", "mean"))


def noisy(epsilon=0.6):
    return mp.dp.count(mp.dataset("bank", "people", ["id"]), unit="id", epsilon=epsilon)


def given_away():
    return mp.keep(mp.put("P1", mp.dataset("bank", "people", ["pay"])))


@pytest.mark.parametrize(
    ("program", "kinds"),
    [
        (rows, ("code",)),
        (rows, OWNERS),
        (cities, ("code", "rule")),
        (small_groups, ("code",)),
        (noisy, ("code",)),
        (given_away, ("command",)),
    ],
    ids=["no guard", "the owner", "columns", "small groups", "budget", "signature"],
)
def test_a_refused_program_runs_once_the_advice_is_followed(bank, host, program, kinds):
    def changed():
        return program(**bank.code)

    changed.__name__ = program.__name__

    def runs() -> Sequence[Refusal]:
        before = len(bank.entries())
        try:
            result = mp.evaluate(host, changed)
        except PartyError as error:
            check_record(bank, before, error)
            return error.refusals
        if program is not given_away:
            mp.fetch(host, result)
        return ()

    count = 0
    while (refusals := runs()) and count < 6:
        count += 1
        advice = [each for each in refusals[0].advice if each.change]
        ways = [each for kind in kinds for each in advice if each.kind == kind]
        assert ways, refusals[0]
        for each in ways if ways[0].kind in OWNERS else ways[:1]:
            bank.follow(each, changed)
    assert not refusals
    assert count > 0


def check_record(bank: Bank, before: int, error: PartyError) -> None:
    """Check that the fields of refusals are what the gate has on record."""

    def refused():
        return [each for each in bank.entries()[before:] if each.kind == "refusal"]

    body = wait_until(refused, f"a record of: {error}")[-1].body
    if "refused" not in body:  # rules were not asked
        (refusal,) = error.refusals
        assert body["why"] in refusal.reason
        assert refusal.resource == f'Program::"{body["program"]}"'
        return
    assert len(error.refusals) == len(body["refused"])
    for refusal, row in zip(error.refusals, body["refused"], strict=True):
        fields = refusal.party, refusal.code, refusal.action, refusal.resource, refusal.what
        assert fields == ("bank", row["code"], row["action"], row["resource"], row.get("what", ""))
        assert list(refusal.rules) == row["rules"]
        assert list(refusal.columns) == row["columns"]
        assert refusal.location == row.get("line", "")
        assert refusal.reason in body["why"]


def test_a_value_is_put_once_the_rule_has_an_exception(bank, host):
    with mp.with_ctx(host):
        with pytest.raises(MPLangError) as found:
            mp.put("P0", np.float64(1))
        (refusal,) = found.value.refusals
        assert refusal.code == "forbidden"
        for each in refusal.advice:
            bank.follow(each, noisy)
        mp.put("P0", np.float64(1))


def test_failures_that_are_used_up_are_raised_by_the_setting():
    budget = FailureBudget("bank", 1)
    budget.begin(("ann", "s", "s-0"))
    budget.end(("ann", "s", "s-0"), failed=True)
    with pytest.raises(Exception, match="has used up its 1 failed runs") as found:
        budget.begin(("ann", "s", "s-1"))
    (refusal,) = found.value.refusals
    (setting,) = refusal.advice
    assert (refusal.party, refusal.code, setting.by) == ("bank", "failures", "bank")
    limit = yaml.safe_load(setting.change)["limits"]["failures"]
    assert FailureBudget("bank", limit).begin(("ann", "s", "s-1"))

"""What decided is on record: which rules, which approvals, which configuration, and when it ran."""

from __future__ import annotations

from contextlib import closing

import pytest
import yaml
from mplang_analysis import RunRequest
from mplang_policy import Gate, Ledger, LedgerError
from mplang_policy.approving import made_of, review_of
from mplang_policy.envelope import new_key, read_key, sign
from mplang_policy.offline import asked_of
from mplang_policy.owner import Owner
from mplang_policy.rotation import read_archive, rotate
from mplang_policy.verification import mistakes
from policy_testbed import BANK, CATALOGUE, CLUSTER, NAMES, PERMIT_ALL, program_of
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.ext import AdmissionError

APPROVED = """
permit (principal, action in [Action::"run", Action::"read"], resource);
permit (principal, action in [Action::"fetch", Action::"disclose"], resource)
when { context.approved };
"""


def pay():
    return mp.dataset("bank", "people", ["pay"])


class BankOfTests:
    """Bank with a gate, as its worker makes it."""

    def __init__(self, folder) -> None:
        self.folder = folder
        for name in ("ann", "bob"):
            new_key(folder / f"{name}.key", None)
        self.fields = {
            **BANK,
            "data": CATALOGUE["bank"],
            "gate": {
                "policy": "rules.cedar", "log": "gate.db", "approvals": "approvals",
                "approvers": {"ann": "ann.pub", "bob": "bob.pub"}, "threshold": 2,
            },
        }  # fmt: skip
        (folder / "approvals").mkdir()
        (folder / "rules.cedar").write_text(PERMIT_ALL)
        (folder / "worker.yaml").write_text(yaml.safe_dump(self.fields))
        self.owner = Owner.read(str(folder / "worker.yaml"))
        self.gate: Gate | None = None

    def start(self, **changed) -> Gate:
        if self.gate is not None:
            self.gate.close()
        self.gate = Gate(self.owner.gate, "bank", self.owner.names)
        self.gate.start({**self.fields, **changed})
        return self.gate

    def run(self) -> None:
        asked = asked_of(program_of(pay), NAMES, "bank", "analyst", "production")
        run, gate = RunRequest("s", "s-0", asked), self.gate
        assert gate is not None
        decision = gate.decide(run)
        if decision.allowed:
            gate.begin(run, decision)
        else:
            gate.refuse(run, decision)

    def entries(self, *kinds: str):
        with closing(Ledger(self.folder / "gate.db", read_only=True)) as ledger:
            assert list(mistakes(ledger.entries(), ledger.detail)) == []
            return [each for each in ledger.entries() if not kinds or each.kind in kinds]

    def detail(self, digest: str):
        with closing(Ledger(self.folder / "gate.db", read_only=True)) as ledger:
            return ledger.detail(digest)


@pytest.fixture
def bank(tmp_path):
    made = BankOfTests(tmp_path)
    made.start()
    yield made
    made.gate.close()


def test_which_rules_allowed_a_run_can_be_read_years_later(bank):
    bank.run()
    (bank.folder / "rules.cedar").write_text(f"// of March\n{PERMIT_ALL}")
    bank.run()
    bank.run()
    (bank.folder / "rules.cedar").write_text(
        'permit (principal, action == Action::"run", resource);'
    )
    with pytest.raises(AdmissionError):
        bank.run()
    told = [each.body["rules"] for each in bank.entries("run", "refusal")]
    assert [each.partition(":")[0] for each in told] == ["1", "2", "2", "3"]
    texts = [bank.detail(each.body["rows"]) for each in bank.entries("rules")]
    assert texts[1] == [["rules.cedar", f"// of March\n{PERMIT_ALL}"]]
    assert [each.partition(":")[2] for each in dict.fromkeys(told)] == [
        each.body["rows"] for each in bank.entries("rules")
    ]


def test_rules_that_were_moved_to_an_archive_are_read_there(bank):
    bank.run()
    with closing(Ledger(bank.folder / "gate.db")) as ledger:
        rotate(ledger, bank.folder / "old.jsonl", 1)
    (rules,) = (d for e, d in read_archive(bank.folder / "old.jsonl") if e.kind == "rules")
    assert rules == [["rules.cedar", PERMIT_ALL]]
    bank.run()  # the version goes on
    assert bank.entries("run")[-1].body["rules"].startswith("1:")


def test_a_start_is_on_record_and_what_of_the_configuration_has_changed(bank):
    bank.start()
    bank.start(observable=True, coordinators=["analyst", "other"])
    kinds = [each.kind for each in bank.entries()]
    assert kinds == [
        "start", "configuration", "rules", "stop", "start", "stop", "start", "configuration",
    ]  # fmt: skip
    assert bank.entries("configuration")[-1].body["changed"] == ["coordinators", "observable"]
    assert "other" not in str([each.body for each in bank.entries()])


def test_what_changes_of_the_certificates_is_on_record_once(bank):
    for digest in ("a", "a", "b"):
        bank.gate.note("certificates", {"cert": digest})
    assert [each.body["cert"] for each in bank.entries("certificates")] == ["a", "b"]


def test_an_approval_is_on_record_from_when_it_comes(bank):
    """With each signature; as it is used; and as it is revoked."""
    (bank.folder / "rules.cedar").write_text(APPROVED)
    path = bank.folder / "pay.mpl"
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(path, mp.compile(pay, cluster_spec=CLUSTER))
    review = review_of(bank.owner, str(path), "analyst", [])
    approval = made_of(bank.owner, str(path), [review], 1, _next_year())
    file, signed = bank.folder / "approvals" / "pay.approval", None
    for name in ("ann", "bob"):
        signed = sign(approval, read_key(str(bank.folder / f"{name}.key")), signed)
        file.write_bytes(signed)
        with pytest.raises(AdmissionError) if name == "ann" else _nothing():
            bank.run()
    assert [each.body["signers"] for each in bank.entries("approval")] == [["ann"], ["ann", "bob"]]
    assert bank.entries("run")[-1].body["approval"] == approval.id
    told = CliRunner().invoke(
        _app(), ["revoke", approval.id, "-c", str(bank.folder / "worker.yaml")]
    )
    assert told.exit_code == 0, told.output
    assert bank.entries("revoked")[-1].body["approval"] == approval.id
    bank.start()
    bank.gate.open_approval(signed, "analyst")
    assert len(bank.entries("approval")) == 2  # nothing of it is new


def test_an_approval_that_a_coordinator_passes_on_is_on_record_with_who_has(bank):
    path = bank.folder / "pay.mpl"
    with mp.catalogue(CATALOGUE):
        mp.artifact.save(path, mp.compile(pay, cluster_spec=CLUSTER))
    review = review_of(bank.owner, str(path), "analyst", [])
    approval = made_of(bank.owner, str(path), [review], 1, _next_year())
    signed = sign(approval, read_key(str(bank.folder / "ann.key")))
    signed = sign(approval, read_key(str(bank.folder / "bob.key")), signed)
    for _ in range(3):
        assert bank.gate.open_approval(signed, "analyst") is not None
    (entry,) = bank.entries("approval")
    assert (entry.body["coordinator"], entry.body["approval"]) == ("analyst", approval.id)


# -- clocks


def test_a_clock_that_was_ahead_is_accepted_by_the_owner_and_on_record(tmp_path):
    now = [1000.0]
    with closing(Ledger(tmp_path / "gate.db", lambda: now[0])) as ledger:
        assert ledger.accept_clock() == 0
        now[0] = 90_000_000.0  # years ahead, before the time server is asked
        ledger.add("refusal", {"coordinator": "analyst"})
        now[0] = 2000.0
        with pytest.raises(LedgerError, match="run mplang audit accept-clock"):
            ledger.add("run", {})
        assert ledger.accept_clock() == 90_000_000.0 - 2000
        ledger.add("run", {})
        assert ledger.accept_clock() == 0
        entries = list(ledger.entries())
        assert [each.kind for each in entries] == ["refusal", "clock accepted", "run"]
        assert [each.time for each in entries[1:]] == [2000.0, 2000.0]
        assert entries[1].body == {"before": 90_000_000.0, "now": 2000.0}
        assert list(mistakes(entries, ledger.detail)) == []


def test_a_running_gate_goes_on_once_the_clock_is_accepted(bank, tmp_path):
    with closing(Ledger(tmp_path / "gate.db", lambda: 4e9)) as ahead:
        ahead.add("refusal", {})
    with pytest.raises(AdmissionError, match="until its owner has repaired its log"):
        bank.run()
    config = str(bank.folder / "worker.yaml")
    done = CliRunner().invoke(_app(), ["audit", "accept-clock", "-c", config])
    assert "goes on by the clock as it is now" in done.output
    bank.run()
    again = CliRunner().invoke(_app(), ["audit", "accept-clock", "-c", config])
    assert "there is nothing to accept" in str(again.exception)


def _app():
    from mplang_cli.cli import app

    return app


def _next_year():
    import datetime

    return datetime.datetime.now(datetime.UTC).replace(microsecond=0) + datetime.timedelta(days=300)


def _nothing():
    import contextlib

    return contextlib.nullcontext()

"""The gate: what it decides is on record, and what cannot be recorded does not happen."""

from __future__ import annotations

import gc
import json
import sqlite3
import time
import weakref
from contextlib import closing
from dataclasses import replace

import pytest
from mplang_analysis import RunRequest
from mplang_policy import Gate, GateConfig, Ledger, requests_of
from mplang_policy.approval import rows_of, uncovered
from mplang_policy.ledger import canonical
from mplang_policy.offline import asked_of
from policy_testbed import NAMES, PERMIT_ALL, names_of_bank, program_of

import mplang_core as mp
from mplang_core.ext import AdmissionError, ConfigError


def pay():
    return mp.dataset("bank", "people", ["pay"])


@pytest.fixture
def made(tmp_path):
    """Return a function that makes the gate of the bank, with rules."""
    gates = []

    def make(rules=PERMIT_ALL, clock=time.time, **more):
        (tmp_path / "bank.cedar").write_text(rules)
        config = GateConfig(policy="bank.cedar", log="gate.db", **more).at(str(tmp_path))
        gates.append(Gate(config, "bank", names_of_bank(), clock=clock))
        return gates[-1]

    yield make
    for each in gates:
        each.close()


def run_of(**fields):
    asked = asked_of(program_of(pay), NAMES, "bank", "analyst", "production")
    return RunRequest("session", "session-0", asked, **fields)


def entries(tmp_path):
    """Return what is on record, but for the rules, which come before the first."""
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        return [(each.kind, each.body) for each in ledger.entries() if each.kind != "rules"]


def test_a_run_is_on_record_with_all_that_it_does(made, tmp_path):
    gate, run = made(), run_of()
    gate.begin(run, gate.decide(run))
    ((kind, body),) = entries(tmp_path)
    assert (kind, body["coordinator"], body["name"]) == ("run", "analyst", "pay")
    assert body["program"] == run.asked.program
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        rows = ledger.detail(body["rows"])
    assert [row["action"] for row in rows] == ["run", "read", "fetch", "disclose"]
    assert rows[2]["columns"] == ["people.pay"]


def test_a_refusal_is_on_record_with_its_reason(made, tmp_path):
    gate, run = made('permit (principal, action == Action::"run", resource);'), run_of()
    decision = gate.decide(run)
    with pytest.raises(ValueError, match="refused does not begin"):
        gate.begin(run, decision)
    with pytest.raises(AdmissionError, match="bank refuses to have data set people read"):
        gate.refuse(run, decision)
    ((kind, body),) = entries(tmp_path)
    assert kind == "refusal"
    assert "no rule permits anything" in body["why"]
    assert [each["action"] for each in body["refused"]] == ["read", "fetch", "disclose"]


def test_rules_that_break_shut_the_gate_until_they_are_mended(made, tmp_path):
    gate, run = made(), run_of()
    assert gate.refuses() == ""
    (tmp_path / "bank.cedar").write_text("permit (principal, action, resource) when { x };")
    with pytest.raises(AdmissionError, match="bank runs nothing until its owner has repaired"):
        gate.decide(run)
    assert "bank.cedar" in gate.refuses()
    (tmp_path / "bank.cedar").unlink()
    with pytest.raises(AdmissionError):
        gate.decide(run)
    with pytest.raises(AdmissionError):
        gate.put("analyst", "session", "x", 8, "production")
    (tmp_path / "bank.cedar").write_text(PERMIT_ALL)
    assert gate.decide(run).allowed
    assert gate.refuses() == ""
    assert [kind for kind, _ in entries(tmp_path)] == ["refusal"] * 3


def test_the_owners_log_tells_once_that_rules_broke_and_that_they_are_mended(
    made, tmp_path, caplog
):
    gate = made()
    assert not caplog.messages
    for _ in range(3):
        (tmp_path / "bank.cedar").write_text("permit (principal, action, resource) when { x };")
        gate.refuses()
    (tmp_path / "bank.cedar").unlink()
    for _ in range(3):
        gate.refuses()
    (tmp_path / "bank.cedar").write_text(PERMIT_ALL)
    assert gate.refuses() == ""
    broken, gone, mended = caplog.messages
    assert "no valid rules: bank.cedar" in broken
    assert "no valid rules: cannot read the policy" in gone
    assert "have changed, and are read" in mended


def test_a_decision_is_made_anew_when_the_rules_change(made, tmp_path):
    gate, run = made(), run_of()
    assert gate.decide(run).allowed
    assert gate.decide(run) is gate.decide(run)
    (tmp_path / "bank.cedar").write_text("forbid (principal, action, resource);")
    assert not gate.decide(run).allowed


def test_a_run_that_waits_begins_by_the_rules_of_when_it_begins(made, tmp_path):
    """It waits for the gates of others as long as one of them likes."""
    gate, run = made(), run_of()
    decision = gate.decide(run)
    (tmp_path / "bank.cedar").write_text("")
    with pytest.raises(AdmissionError, match="no rule permits"):
        gate.begin(run, decision)
    (tmp_path / "bank.cedar").write_text(f"{PERMIT_ALL} // again")
    gate.begin(run, decision)
    assert [kind for kind, _ in entries(tmp_path)] == ["refusal", "run"]


def test_a_decision_is_kept_as_long_as_what_was_asked(made):
    gate, run = made(), run_of()
    asked = weakref.ref(run.asked)
    assert gate.decide(run).allowed
    del run
    gc.collect()
    assert asked() is None


def test_rules_that_are_wrong_at_the_start_are_told(made):
    with pytest.raises(ConfigError, match="bank.cedar: line 1"):
        made("permit")


def test_a_peer_that_remembers_another_log_is_told_so(made, tmp_path):
    gate, run = made(), run_of(seen={"shop": f"7:{'b' * 64}"})
    with pytest.raises(AdmissionError, match="shop remembers another log of bank"):
        gate.decide(run)
    ((_, body),) = entries(tmp_path)
    assert "shop remembers entry 7 of this party's log" in body["why"]


def test_nothing_begins_that_cannot_be_recorded(made, tmp_path):
    gate, run = made(), run_of()
    decision = gate.decide(run)
    with closing(sqlite3.connect(tmp_path / "gate.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        for way in (
            lambda: gate.begin(run, decision),
            lambda: gate.put("analyst", "session", "x", 8, "production"),
            lambda: gate.record("fetch", {"value": "session-0.0"}),
        ):
            with pytest.raises(AdmissionError, match="until its owner has repaired its log"):
                way()
        assert "locked" in gate.refuses()
        other.rollback()
    gate.begin(run, decision)
    assert gate.refuses() == ""
    assert [kind for kind, _ in entries(tmp_path)] == ["run"]


def test_a_log_that_cannot_be_read_refuses_a_run(made):
    gate, run = made(), run_of(seen={"shop": f"7:{'b' * 64}"})
    gate.close()
    with pytest.raises(AdmissionError, match="until its owner has repaired its log"):
        gate.decide(run)


def test_nobody_fills_the_disk_of_an_owner_with_entries(made, tmp_path):
    """The others go on; the log has no more of whoever does, and says so once."""
    gate, run = made(entries=3), run_of()
    gate.put("analyst", "s", "x", 1, "production")
    gate.begin(run, gate.decide(run))
    gate.record("refusal", {"coordinator": "analyst"})
    for _ in range(5):
        with pytest.raises(
            AdmissionError, match="bank does nothing more for analyst today"
        ) as told:
            gate.decide(run)
        with pytest.raises(AdmissionError, match="its log has . entries of it since"):
            gate.record("fetch", {"coordinator": "analyst"})
        with pytest.raises(AdmissionError):
            gate.put("analyst", "s", "x", 1, "production")
    assert "that its owner allows in a day (gate.entries); wait for the next day" in str(told.value)
    gate.record("end", {"coordinator": "analyst"})  # of what has begun
    gate.put("other", "s", "x", 1, "production")
    kinds = [kind for kind, _ in entries(tmp_path)]
    assert kinds == ["put", "run", "refusal", "refusal", "end", "put"]
    assert "more of today are not on record" in entries(tmp_path)[3][1]["why"]


def caused(tmp_path):
    with closing(Ledger(tmp_path / "gate.db", read_only=True)) as ledger:
        return ledger.written(0)


def test_nobody_fills_the_disk_of_an_owner_with_long_entries(made, tmp_path):
    gate = made(bytes=20_000)

    def fill():
        for _ in range(1000):
            gate.record("refusal", {"coordinator": "analyst", "why": "x" * 1000})

    for _ in range(2):
        with pytest.raises(AdmissionError, match=r"bytes of it since .* \(gate.bytes\)"):
            fill()
    assert 18_000 < caused(tmp_path)["analyst"].bytes < 22_000
    gate.record("refusal", {"coordinator": "other", "why": "x" * 1000})


def test_what_a_run_may_do_counts_as_often_as_it_is_written(made, tmp_path):
    gate, run = made(bytes=8000), run_of()
    gate.begin(run, gate.decide(run))
    first = caused(tmp_path)["analyst"].bytes
    gate.begin(run, gate.decide(run))
    assert caused(tmp_path)["analyst"].bytes - first < first - 1000
    rows = [replace(each, line=f"{'x' * 190}.py:{i}") for i in range(20) for each in run.asked.rows]
    rows = [replace(each, payload=table_of(str(i))) for i, each in enumerate(rows)]
    large = replace(run, asked=replace(run.asked, rows=rows))
    with pytest.raises(AdmissionError, match="gate.bytes"):
        gate.begin(large, gate.decide(large))
    assert caused(tmp_path)["analyst"].bytes < 8000
    gate.begin(run, gate.decide(run))  # which is not
    assert [kind for kind, _ in entries(tmp_path)] == ["run", "run", "refusal", "run"]


def test_a_worker_that_is_started_again_has_not_forgotten(made, tmp_path):
    gate, run = made(), run_of()
    gate.begin(run, gate.decide(run))
    gate.record("fetch", {"coordinator": "analyst"})
    gate.record("end", {"coordinator": "analyst"})
    gate.record("end", {"value": "of nobody"})
    with closing(sqlite3.connect(tmp_path / "gate.db")) as file, file:
        file.execute("UPDATE log SET body = 'changed' WHERE number = 3")
    gate.close()
    again = made(entries=2)
    with pytest.raises(AdmissionError, match="its log has 2 entries of it"):
        again.decide(run)
    again.put("other", "s", "x", 1, "production")


def test_a_quota_is_of_a_day(made, tmp_path):
    now = [1_700_000_000.0]
    gate = made(entries=1, clock=lambda: now[0])
    gate.record("fetch", {"coordinator": "analyst"})
    for _ in range(2):
        with pytest.raises(AdmissionError, match="since 2023-11-14 00:00 UTC"):
            gate.record("fetch", {"coordinator": "analyst"})
    now[0] += 86_400
    gate.record("fetch", {"coordinator": "analyst"})
    gate.close()
    now[0] += 3600
    with pytest.raises(AdmissionError, match="since 2023-11-15 00:00 UTC"):
        made(entries=1, clock=lambda: now[0]).record("fetch", {"coordinator": "analyst"})
    now[0] += 86_400
    made(entries=1, clock=lambda: now[0]).record("fetch", {"coordinator": "analyst"})
    assert [kind for kind, _ in entries(tmp_path)].count("fetch") == 3


WIDE = "\U00010000" * 5000


def table_of(column):
    return str(mp.TableType([(column, "int64")]))


def test_a_refusal_takes_some_kilobytes_whatever_its_program_says(made, tmp_path):
    gate, run = made('permit (principal, action == Action::"run", resource);'), run_of()
    rows = [
        replace(each, payload=table_of(WIDE + str(i))) for i, each in enumerate(run.asked.rows * 5)
    ]
    run = replace(run, asked=replace(run.asked, name=WIDE, rows=rows))
    with pytest.raises(AdmissionError) as told:
        gate.refuse(run, gate.decide(run))
    assert len(str(told.value)) < 5000
    assert all(len(repr(each)) < 8000 for each in told.value.refusals)
    gate.record("refusal", {"coordinator": "analyst", "why": WIDE, "value": WIDE})
    for _, body in entries(tmp_path):
        assert len(canonical(body)) < 8000
        assert "5000 characters, SHA-256" in json.dumps(body)
    (_, body), _ = entries(tmp_path)
    assert len(body["refused"]) + body["more"] == 11
    assert len(body["sha256"]) == 64


def test_columns_of_a_refused_row_are_counted(made, tmp_path):
    gate, run = made('permit (principal, action == Action::"run", resource);'), run_of()
    reads = [f"people.{i}" for i in range(50)]
    run = replace(run, asked=replace(run.asked, reads=reads, remarks=[WIDE] * 50))
    with pytest.raises(AdmissionError) as told:
        gate.refuse(run, gate.decide(run))
    assert all(len(repr(each)) < 8000 for each in told.value.refusals)
    ((_, body),) = entries(tmp_path)
    assert body["refused"][0]["columns"] == [*reads[:8], "and 42 more"]


def test_an_approval_tells_long_names_apart():
    asked = run_of().asked
    one, other = (
        requests_of(
            replace(asked, rows=[replace(row, payload=table_of(WIDE + end)) for row in asked.rows]),
            {},
        )
        for end in "ab"
    )
    assert uncovered(rows_of(one), one) is None
    assert uncovered(rows_of(one), other) is not None

"""Expiry of a log: details and bodies go by the owner's rule, on record; the chain verifies."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import yaml
from mplang_policy import Amount, Gate, GateConfig, Ledger, LedgerError
from mplang_policy.expiry import expire, expiring
from mplang_policy.expiry_check import ExpiryCheck
from mplang_policy.retention import Retention
from mplang_policy.rotation import read_archive, rotate
from mplang_policy.state import record_rules
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes
from policy_testbed import BANK, PERMIT_ALL, data_of_bank, names_of_bank
from typer.testing import CliRunner

from mplang_core.ext import DAY, ConfigError

BOTH = Retention(details="90d", entries="365d")
APPROVAL = "ab12"


class LogOfTests:
    """Log of a bank with a run a day: all spend, and the first uses an approval."""

    def __init__(self, folder, days=10) -> None:
        self.path, self.now = folder / "gate.db", 0.0
        self.ledger = Ledger(self.path, lambda: self.now)
        for day in range(days):
            self.now = day * DAY
            self.run(day)

    def run(self, day: int) -> None:
        with self.ledger.writing() as writing:
            rows = writing.add_detail([{"secret row": day}])
            writing.spend("analyst", "people", Amount(100, 1))
            used = {"approval": APPROVAL} if day == 0 else {}
            if used:
                writing.change("INSERT INTO uses VALUES (?, 1)", APPROVAL)
            body = {"coordinator": "analyst", "name": f"secret{day}", "rows": rows}
            writing.add("run", {**body, "spends": {"people": [100, 1]}, **used})

    def expire(self, day: float, retention=BOTH) -> int:
        self.now = day * DAY
        return expire(self.ledger, retention, self.now)

    def wrong(self, expiries=None) -> list[str]:
        found = mistakes(self.ledger.entries(), self.ledger.detail, (), expiries)
        return [*found, *sums_that_differ(self.ledger)]

    def change(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as file, file:
            for each in statements:
                file.execute(each)

    @property
    def bodies(self) -> list[int]:
        return [e.number for e in self.ledger.entries() if e.body and e.kind == "run"]

    @property
    def details(self) -> int:
        return len(self.ledger.rows("SELECT hash FROM details"))


@pytest.fixture
def log(tmp_path):
    made = LogOfTests(tmp_path)
    yield made
    made.ledger.close()


def test_details_expire_and_the_log_verifies(log):
    assert log.expire(89) == 0
    assert log.expire(94.5) == 5
    assert (log.details, log.bodies) == (5, [*range(1, 11)])
    checked = ExpiryCheck()
    assert log.wrong(checked) == []
    assert checked.rules == {"gate.retention.details: 90d": 5}
    last = [*log.ledger.entries()][-1]
    assert (last.kind, last.body["what"], last.body["count"]) == ("expired", "details", 5)
    assert log.expire(94.6) == 0  # what is on record once is not again


def test_entries_are_reduced_to_their_hashes_and_what_they_used_up_counts(log):
    heads = [(e.number, e.hash) for e in log.ledger.entries()]
    log.expire(369.5)
    assert log.bodies == [6, 7, 8, 9, 10]
    assert log.wrong() == []
    assert [(e.number, e.hash) for e in log.ledger.entries()][:10] == heads
    assert log.ledger.uses() == {APPROVAL: 1}
    assert log.ledger.spent()["people", "analyst"] == Amount(1000, 10)
    log.change("UPDATE uses SET used = 0", "UPDATE spent SET epsilon = 500")
    assert log.wrong() == [
        f"the count of the uses of approval {APPROVAL} was changed",
        "what analyst has used up of data set people was changed",
    ]


def test_what_has_expired_is_not_in_the_file(log):
    log.expire(1000)
    log.ledger.close()
    left = b"".join(each.read_bytes() for each in log.path.parent.glob("gate.db*"))
    assert b"secret row" not in left
    assert b"secret0" not in left
    assert b"secret9" not in left


def test_a_detail_that_a_younger_entry_speaks_of_stays(log):
    log.now = 50 * DAY
    log.run(1)
    assert log.expire(95) == 5  # that of day 1 stays
    assert log.wrong() == []
    assert log.expire(141) == 5
    assert (log.details, log.wrong()) == (0, [])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE log SET body = 'null' WHERE number = 8", "body of entry 8 (run) was deleted"),
        ("UPDATE log SET time = 1.5 WHERE number = 2", "reduced, some were changed"),
        ("UPDATE log SET kind = 'put' WHERE number = 2", "reduced, some were changed"),
        ("UPDATE log SET hash = 'a' WHERE number = 2", "entry 3 (run) does not follow"),
        ("UPDATE log SET body = 'null' WHERE kind = 'expired'", "(expired) was changed"),
        ("DELETE FROM log WHERE number = 2", "after entry 1 comes 3"),
        ("DELETE FROM details", "what entry 11 (run) speaks of is lost"),
    ],
)
def test_what_is_deleted_without_a_rule_is_found(log, change, told):
    log.now = 300 * DAY
    log.run(9)
    log.expire(369.5)
    log.change(change)
    assert any(told in each for each in log.wrong()), log.wrong()


def test_what_was_deleted_before_its_time_is_found(log):
    log.change("UPDATE log SET body = 'null' WHERE number = 10")
    entries = [*log.ledger.entries()]
    from mplang_policy.expiry import digest_of_reduced

    forged = {"what": "entries", "rule": "mine", "days": 1, "first": 10, "before": 11, "count": 1}
    log.ledger.add("expired", {**forged, "sha256": digest_of_reduced(entries[-1:]), "uses": {}})
    assert "entry 10 (run) was deleted before its 1 days were over" in log.wrong()


def test_nothing_expires_that_tells_of_a_change(log):
    log.change("UPDATE log SET body = '{\"a\": 1}' WHERE number = 2")
    with pytest.raises(LedgerError, match="entry 2 was changed, so nothing expires; mplang audit"):
        log.expire(1000)
    assert log.wrong()[0] == "entry 2 (run) was changed"
    assert log.details == 10


def test_a_detail_that_was_changed_does_not_expire(log):
    log.change("UPDATE details SET body = '[]'")
    with pytest.raises(LedgerError, match=r"detail [0-9a-f]{12} was changed, so nothing expires"):
        log.expire(1000)


def test_expiry_and_rotation_go_together(log, tmp_path):
    log.expire(369.5)
    assert rotate(log.ledger, tmp_path / "1.jsonl", 6) == 6
    assert log.wrong() == []
    log.expire(400)
    assert log.bodies == []
    assert log.wrong() == []
    rotate(log.ledger, tmp_path / "2.jsonl", 1)
    assert log.wrong() == []
    assert log.ledger.spent()["people", "analyst"] == Amount(1000, 10)
    archived = [e for n in (1, 2) for e, _ in read_archive(tmp_path / f"{n}.jsonl")]
    assert [*mistakes([*archived, *log.ledger.entries()])] == []


def test_what_is_interrupted_leaves_all_or_nothing_and_the_next_time_goes_on(log, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mplang_policy.ledger.Writing.set_recorded", fail)  # after all else
        with pytest.raises(KeyboardInterrupt):
            log.expire(1000)
    assert (log.details, len(log.bodies), log.wrong()) == (10, 10, [])
    assert "expired" not in {each.kind for each in log.ledger.entries()}
    log.expire(1000)
    assert (log.details, log.bodies, log.wrong()) == (0, [], [])


def test_batches_are_each_on_record(log, monkeypatch):
    monkeypatch.setattr("mplang_policy.expiry.BATCH", 3)
    log.expire(1000)
    assert (log.details, log.bodies, log.wrong()) == (0, [], [])
    counts = [e.body["count"] for e in log.ledger.entries() if e.kind == "expired"]
    assert sum(counts) == 20
    assert max(counts) == 3


def test_a_revoked_approval_and_withdrawn_runs_stay_so(log):
    with log.ledger.writing() as writing:
        writing.revoke(APPROVAL)
        writing.change("INSERT INTO stopped VALUES ('analyst', 's-1')")
    log.expire(10_000)
    assert log.ledger.revoked() == {APPROVAL}
    assert log.ledger.rows("SELECT run FROM stopped") == [("s-1",)]


def test_an_entry_that_a_wrong_clock_has_dated_ahead_is_as_old_as_the_next(log):
    log.now = 5000 * DAY
    log.run(11)
    log.now = 10 * DAY
    log.ledger.accept_clock()
    log.expire(400)
    assert log.bodies == []
    assert log.wrong() == []


def test_rules_that_count_stay_and_those_before_expire(tmp_path):
    (tmp_path / "rules.cedar").write_text(PERMIT_ALL)
    now = [0.0]
    fields = {"policy": str(tmp_path / "rules.cedar"), "log": str(tmp_path / "gate.db")}
    gate = Gate(GateConfig(**fields), "bank", names_of_bank(), clock=lambda: now[0])
    gate.start({})
    (tmp_path / "rules.cedar").write_text(f"{PERMIT_ALL}\n// the second ones")
    with gate._ledger.writing() as writing:
        second = record_rules(writing, gate._rules.current())
    now[0] = 31 * DAY
    gate.note("certificates", {})
    gate.expire(now[0], lambda about: None)
    assert len(gate._ledger.rows("SELECT hash FROM details")) == 2  # there is no rule yet
    worker = {**BANK, "data": data_of_bank()}
    gate.reload({**fields, "retention": {"entries": "30d"}}, worker)()
    gate.expire(now[0], lambda about: None)
    kept = [digest for (digest,) in gate._ledger.rows("SELECT hash FROM details")]
    assert second.endswith(kept[0])
    assert len(kept) == 1
    assert [*mistakes(gate._ledger.entries(), gate._ledger.detail)] == []
    gate.close()


def test_the_commands_say_what_has_expired(log, tmp_path):
    from mplang_cli.cli import app

    log.expire(369.5)
    log.ledger.close()
    fields = {**BANK, "gate": {"policy": "rules.cedar", "log": "gate.db"}}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))

    def audit(command: str) -> str:
        done = CliRunner().invoke(app, ["audit", command, "-c", str(tmp_path / "worker.yaml")])
        assert done.exit_code == 0, done.output
        return done.output

    assert "5 of them expired, on record, by the rule gate.retention.entries: 365d" in audit(
        "verify"
    )
    shown = audit("show")
    assert "run (expired: its hash is " in shown
    assert "5 entries expired, by gate.retention.entries: 365d" in shown
    assert shown.count('"expired": true') == 0
    assert audit("export").count('"expired": true') == 5


def test_what_will_expire_is_listed_and_nothing_is_changed(log):
    before = log.path.read_bytes()
    listed = [*expiring(log.ledger, BOTH)]
    assert len(listed) == 20
    assert listed[0] == ("details", "1 details of the log, 1 to 1", 91 * DAY)
    assert listed[-1] == ("entries", "1 entries of the log, 10 to 10", 375 * DAY)
    assert log.path.read_bytes() == before


def test_rules_of_retention_are_checked():
    assert Retention().days == {}
    assert Retention(entries="30d").days == {"details": 30, "entries": 30}
    for wrong in ("0d", "30", "1h", "-1d", "999999d", "d"):
        with pytest.raises(ConfigError, match="field 'details': "):
            Retention(details=wrong)
    with pytest.raises(ConfigError, match="kept no longer than the entries"):
        Retention(details="100d", entries="99d")

"""The log: what was done to it is found, and what cannot be written does not happen."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import threading
from contextlib import closing, contextmanager

import pytest
from mplang_policy import Head, Ledger, LedgerError
from mplang_policy.ledger import BEGINNING, hash_of
from mplang_policy.peer_logs import PeerLogs
from mplang_policy.signed_heads import Seal, SignedHead
from mplang_policy.verification import mistakes


@pytest.fixture
def path(tmp_path):
    """Return a log of five runs."""
    path = tmp_path / "gate.db"
    with closing(Ledger(path)) as ledger:
        for i in range(5):
            with ledger.writing() as writing:
                rows = writing.add_detail([{"action": "fetch", "k": i % 2}])
                writing.add("run", {"run": f"s-{i}", "rows": rows})
    return path


def wrong(path, **heads):
    with closing(Ledger(path, read_only=True)) as ledger:
        return list(mistakes(ledger.entries(), ledger.detail, list(heads.items())))


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)


def test_a_log_that_nobody_touched_is_whole(path):
    assert wrong(path) == []


def test_sqlite_backs_up_a_log_while_its_worker_writes(path, tmp_path):
    """As deploy/README.md says; the file alone lacks what is in ``gate.db-wal``."""
    with closing(Ledger(path)) as ledger:
        ledger.add("refusal", {"coordinator": "analyst", "why": "no"})
        shutil.copy(path, tmp_path / "copied.db")
        with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(tmp_path / "b")) as to:
            file.backup(to)
        ledger.add("refusal", {"coordinator": "analyst", "why": "no"})
    assert wrong(tmp_path / "b") == []
    with closing(Ledger(tmp_path / "b", read_only=True)) as kept:
        assert kept.head.number == 6
    with closing(Ledger(tmp_path / "copied.db", read_only=True)) as kept:
        assert kept.head.number < 6


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (["UPDATE log SET body = replace(body, 's-2', 's-9')"], "entry 3 (run) was changed"),
        (["UPDATE log SET time = time + 60 WHERE number = 2"], "entry 2 (run) was changed"),
        (["UPDATE log SET kind = 'put' WHERE number = 4"], "entry 4 (put) was changed"),
        (["DELETE FROM log WHERE number = 3"], "after entry 2 comes 4"),
        (["DELETE FROM log WHERE number < 3"], "the entries before 3 were removed"),
        (
            [
                "UPDATE log SET number = 9 WHERE number = 2",
                "UPDATE log SET number = 2 WHERE number = 3",
                "UPDATE log SET number = 3 WHERE number = 9",
            ],
            "entry 2 (run) does not follow the entry before",
        ),
        (
            ["INSERT INTO log SELECT 6, time, kind, body, hash, hash FROM log WHERE number = 5"],
            "entry 6 (run) was changed",
        ),
        (["UPDATE details SET body = replace(body, 'fetch', 'other')"], "what entry 1 (run)"),
        (["DELETE FROM details"], "what entry 1 (run) speaks of is lost"),
        (["UPDATE log SET body = 'no JSON' WHERE number = 2"], "entry 2 (run) was changed"),
        (["UPDATE log SET time = 1e300 WHERE number = 2"], "entry 2 (run) was changed"),
    ],
)
def test_what_was_done_to_an_entry_is_found_and_named(path, statements, told):
    change(path, *statements)
    assert told in " ".join(wrong(path))


def made_anew(path, *, without: int) -> None:
    """Recompute the whole log without one of its entries, as its owner could."""
    with closing(Ledger(path, read_only=True)) as ledger:
        kept = [each for each in ledger.entries() if each.number != without]
    change(path, "DELETE FROM log")
    last = Head(0, BEGINNING)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for number, each in enumerate(kept, 1):
            digest = hash_of(number, each.time, each.kind, each.text, last.hash)
            fields = (number, each.time, each.kind, each.text, last.hash, digest)
            file.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", fields)
            last = Head(number, digest)


def test_a_log_that_was_made_anew_is_found_by_what_a_peer_remembers(path):
    with closing(Ledger(path, read_only=True)) as ledger:
        remembered = next(each for each in ledger.entries() if each.number == 4)
    made_anew(path, without=2)
    assert wrong(path) == []  # nobody could tell by the log itself
    head = Head(4, remembered.hash)
    assert wrong(path, shop=head) == ["shop remembers another entry 4: the log was made anew"]


def test_a_log_that_was_cut_off_is_found_by_what_a_peer_remembers(path):
    with closing(Ledger(path, read_only=True)) as ledger:
        head = ledger.head
        assert ledger.has(head)
    change(path, "DELETE FROM log WHERE number > 3")
    assert wrong(path) == []
    assert wrong(path, shop=head) == ["shop remembers entry 5; the log was cut off after 3"]
    with closing(Ledger(path)) as ledger:
        assert not ledger.has(head)
        ledger.add("put", {})
        ledger.add("put", {})
        assert not ledger.has(head)  # as long as before, and another one


def test_a_restored_backup_is_found_by_what_a_peer_remembers(path, tmp_path):
    shutil.copy(path, tmp_path / "backup.db")
    with closing(Ledger(path)) as ledger:
        head = ledger.add("run", {"run": "s-5"})
    shutil.copy(tmp_path / "backup.db", path)
    with closing(Ledger(path)) as ledger:
        assert not ledger.has(head)


def test_all_of_a_change_is_written_or_nothing(path):
    with closing(Ledger(path)) as ledger:
        before = ledger.head

        def fail():
            with ledger.writing() as writing:
                writing.add("run", {})
                shop = SignedHead("shop", "run", Seal(3, "0" * 64))
                writing.changed(lambda file: PeerLogs(file).note(shop, "bank", writing.now))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert ledger.head == before
        assert ledger.heads() == {}
        assert ledger.add("run", {}).number == before.number + 1


def test_a_log_that_another_process_has_locked_is_not_waited_for(path):
    with closing(Ledger(path)) as ledger, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.add("run", {})
        other.rollback()
        assert ledger.add("run", {}).number == 6


@contextmanager
def full_disk(path):
    """Let no file of this process grow beyond the log."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_full_disk_does_not_take_did_not_happen(path):
    with closing(Ledger(path)) as ledger:
        before = ledger.head
        with full_disk(path), pytest.raises(LedgerError, match="cannot be used"):
            ledger.add("run", {"name": "x" * 1_000_000})
        assert ledger.head == before
        assert ledger.add("run", {}).number == before.number + 1
    assert wrong(path) == []


def test_a_clock_that_was_set_back_is_told(tmp_path):
    now = [1000.0]
    with closing(Ledger(tmp_path / "gate.db", clock=lambda: now[0])) as ledger:
        ledger.add("run", {})
        now[0] = 990.0  # as a time server corrects it
        ledger.add("run", {})
        assert [entry.time for entry in ledger.entries()] == [1000.0, 1000.0]
        now[0] = 900.0
        with pytest.raises(LedgerError, match="the clock is 100 s before the last entry"):
            ledger.add("run", {})


def test_entries_of_many_threads_are_one_chain(tmp_path):
    with closing(Ledger(tmp_path / "gate.db")) as ledger:

        def add(name):
            for i in range(20):
                ledger.add("put", {"value": f"{name}-{i}"})

        threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert ledger.head.number == 160
        assert list(mistakes(ledger.entries())) == []


def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "gate.db").write_text("nothing of the kind, for longer than a header" * 10)
    with pytest.raises(LedgerError, match=r"gate\.db cannot be used"):
        Ledger(tmp_path / "gate.db")
    change(tmp_path / "other.db", "PRAGMA user_version = 99")
    with pytest.raises(LedgerError, match="has version 99"):
        Ledger(tmp_path / "other.db")
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "none" / "gate.db")


def test_only_its_owner_can_read_a_log(path):
    assert path.stat().st_mode & 0o077 == 0


def test_whoever_has_the_hash_of_an_entry_cannot_guess_the_entry(tmp_path):
    """Peers have the hashes of what they may not read."""
    with closing(Ledger(tmp_path / "gate.db")) as ledger:
        for _ in range(2):
            ledger.add("paused", {"coordinator": "rival"})
        entries = list(ledger.entries())
    assert [each.body for each in entries] == [{"coordinator": "rival"}] * 2
    salts = {json.loads(each.text)["salt"] for each in entries}
    assert len(salts) == 2
    assert all(len(each) == 16 for each in salts)

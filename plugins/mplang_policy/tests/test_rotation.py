"""Rotation: older entries go to an archive; the chain, and what is used up, go on."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import yaml
from mplang_policy import Amount, Ledger
from mplang_policy.rotation import rotate
from mplang_policy.sums import sums_that_differ
from mplang_policy.verification import mistakes
from policy_testbed import BANK
from typer.testing import CliRunner

from mplang_core.ext import ConfigError


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a log of thirty runs."""
    with closing(Ledger(tmp_path / "gate.db")) as ledger:
        for i in range(30):
            with ledger.writing() as writing:
                rows = writing.add_detail([{"row": i % 7}])
                writing.spend("analyst", "people", Amount(100, 1))
                body = {"coordinator": "analyst", "rows": rows, "spends": {"people": [100, 1]}}
                writing.add("run", body)
    fields = {**BANK, "gate": {"policy": "rules.cedar", "log": "gate.db"}}
    (tmp_path / "worker.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path


def wrong(folder) -> list[str]:
    with closing(Ledger(folder / "gate.db", read_only=True)) as ledger:
        return [*mistakes(ledger.entries(), ledger.detail), *sums_that_differ(ledger)]


def run(folder, *args, ok=True) -> str:
    from mplang_cli.cli import app

    given = ["audit", *map(str, args), "-c", str(folder / "worker.yaml")]
    done = CliRunner().invoke(app, given)
    assert (done.exit_code == 0) is ok, done.output
    return done.output + (str(done.exception) if done.exception else "")


def test_a_rotated_log_is_whole_with_its_archives_and_without(folder):
    before = run(folder, "heads")
    assert "moved 20 entries" in run(folder, "rotate", "--to", folder / "1.jsonl", "--keep", "10")
    assert wrong(folder) == []
    with closing(Ledger(folder / "gate.db")) as ledger:
        assert ledger.spent()["people", "analyst"] == Amount(3000, 30)
        assert [each.number for each in ledger.entries()] == [*range(21, 32)]
        ledger.add("put", {})
    assert "moved 8 entries" in run(folder, "rotate", "--to", folder / "2.jsonl", "--keep", "4")
    assert wrong(folder) == []
    assert run(folder, "heads") == before
    both = ["--archive", folder / "1.jsonl", "--archive", folder / "2.jsonl"]
    assert "33 entries" in run(folder, "verify", *both)


def test_what_is_not_in_an_archive_is_missed(folder):
    run(folder, "rotate", "--to", folder / "1.jsonl", "--keep", "10")
    lines = (folder / "1.jsonl").read_text().splitlines()
    (folder / "less.jsonl").write_text("\n".join([*lines[:5], *lines[6:]]))
    told = run(folder, "verify", "--archive", folder / "less.jsonl", ok=False)
    assert "after entry 5 comes 7: some were removed, or moved" in told
    changed = lines[3].replace("analyst", "another")
    (folder / "other.jsonl").write_text("\n".join([*lines[:3], changed, *lines[4:]]))
    assert "entry 4 (run) was changed" in run(
        folder, "verify", "--archive", folder / "other.jsonl", ok=False
    )


def test_entries_that_are_removed_at_the_beginning_are_missed(folder):
    with closing(sqlite3.connect(folder / "gate.db")) as file, file:
        file.execute("DELETE FROM log WHERE number <= 20")
    assert "the entries before 21 were removed, and no rotation records it" in wrong(folder)


def test_a_count_that_is_changed_after_a_rotation_is_found(folder):
    run(folder, "rotate", "--to", folder / "1.jsonl", "--keep", "10")
    with closing(sqlite3.connect(folder / "gate.db")) as file, file:
        file.execute("UPDATE spent SET epsilon = 1000")
    assert wrong(folder) == ["what analyst has used up of data set people was changed"]


def test_an_archive_is_never_overwritten_and_a_short_log_stays(folder):
    (folder / "1.jsonl").write_text("mine")
    with closing(Ledger(folder / "gate.db")) as ledger:
        with pytest.raises(ConfigError, match="exists already; name a new file"):
            rotate(ledger, folder / "1.jsonl", 10)
        assert rotate(ledger, folder / "2.jsonl", 1000) == 0
        with pytest.raises(ConfigError, match=r"cannot write .*No such file"):
            rotate(ledger, folder / "nowhere" / "2.jsonl", 10)
    assert (folder / "1.jsonl").read_text() == "mine"
    assert wrong(folder) == []
    assert not (folder / "2.jsonl").exists()


def test_a_file_that_is_no_archive_is_refused(folder):
    for text in ("{}", "[]", "1", "nothing", '{"number": 1}'):
        (folder / "bad.jsonl").write_text(text)
        told = run(folder, "verify", "--archive", folder / "bad.jsonl", ok=False)
        assert "is not an archive of a log" in told


@pytest.mark.parametrize("body", ['{"spends": [1]}', '{"spends": {"a": 1}}', '{"approval": []}'])
def test_an_entry_that_was_changed_to_no_sums_is_told(folder, body):
    with closing(sqlite3.connect(folder / "gate.db")) as file, file:
        file.execute("UPDATE log SET body = ? WHERE number = 3", (body,))
    assert "entry 3 (run) was changed" in wrong(folder)

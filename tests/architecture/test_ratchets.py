"""Counts that may only fall: what is counted, and when a count is an error."""

from __future__ import annotations

import json

import pytest
import ratchets
from ratchets import ANY, CLASSES, DOCSTRINGS, NAMES

SOURCE = '''
from typing import Any

def told_of(x: Any, given: int) -> dict[str, Any]:
    """Have x told."""
    self.held = found = x
    return heldback


@property
def shape() -> int:
    """The shape is not a verb, and a property needs none."""


class Place:
    """A class is a noun."""
'''


def test_what_is_counted():
    counted = [*ratchets.findings(SOURCE, "m.py")]
    assert [kind for kind, _ in counted].count(ANY) == 2
    assert {where for kind, where in counted if kind == DOCSTRINGS} == {"m.py:4 Have x told."}
    names = {where.split()[-1] for kind, where in counted if kind == NAMES}
    assert names == {"told_of", "given", "held", "found", "Place"}


def test_classes_of_one_name_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ratchets, "ROOT", tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Job: ...\nclass _Own: ...\n")
    modules = {name: [tmp_path / f"{name}.py"] for name in ("a", "b")}
    assert ratchets.classes(modules) == {"Job": ["a.py:1", "b.py:1"]}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs it with a number of shared class names."""
    monkeypatch.setattr(ratchets, "RECORDS", tmp_path / "ratchets.json")
    ratchets.RECORDS.write_text(json.dumps({"all": {CLASSES: 2}}))

    def run(count, *arguments):
        findings = [(CLASSES, f"Job{i}") for i in range(count)]
        monkeypatch.setattr(ratchets, "all_findings", lambda: {"all": findings})
        return ratchets.main(arguments), capsys.readouterr().out

    return run


def test_a_count_that_rises_is_an_error_and_says_where_to_look(run):
    code, said = run(3)
    assert code == 1
    assert "all: 3 public classes with the name of another one, the record is 2; --list all" in said
    assert run(3, "--write")[0] == 1  # it lowers records only
    assert run(3, "--accept")[0] == 0
    assert run(3)[0] == 0


def test_a_count_that_falls_says_how_to_lower_its_record(run):
    code, said = run(1)
    assert (code, "ratchets.py --write" in said) == (0, True)
    assert run(1, "--write")[0] == 0
    assert run(2)[0] == 1

"""Rows and sentences name who reads what is sealed for a reader inside of a party."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from mplang_analysis import disclosure, readers

import mplang_core as mp

TEXT = """
program "sealed" on {0, 1} (%0: f32[3]@{0}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
  return
}"""


@dataclass(frozen=True)
class Sealed:
    """A type of what is sealed for a box at a party, or for the party itself."""

    inside: bool

    def reader(self, party):
        return f"the box of {party}" if self.inside else party


@pytest.fixture
def told(monkeypatch):
    def make(inside):
        monkeypatch.setattr(readers, "type_in", lambda text: Sealed(inside))
        return disclosure(mp.parse(TEXT), names=["shop", "bank"])

    return make


def marked(table, text):
    return any(text in mark.text for mark in table.picture().marks)


def test_a_reader_inside_of_a_party_is_named(told):
    table = told(inside=True)
    assert table.rows[0].texts()[2] == "the box of 1"
    assert table.rows[0].receiver == 1
    first = table.sentences()[0]
    assert (
        first == "The box of bank reads: 3 numbers made of shop's data (demo.py:7); bank does not."
    )
    assert marked(table, "3 numbers, sealed for the box of bank")


def test_what_is_sealed_for_the_party_is_its_own(told):
    table = told(inside=False)
    assert table.rows[0].texts()[2] == "1"
    assert not any("reads" in text for text in table.sentences())
    assert marked(table, "3 numbers, sealed for bank")


def test_other_types_are_sealed_for_nobody():
    assert readers.reader_of("f32[3]", "bank") is None
    assert readers.reader_of("no type at all", "bank") is None

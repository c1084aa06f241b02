"""Effort of an analysis: programs that would take long are refused, by one number for all."""

from __future__ import annotations

import io
import re

import pytest
from mplang_analysis.effort import MAX_EFFORT, PER_OP
from mplang_analysis.report import MAX_FOLDED, TextTable
from mplang_testing import dialect
from rich.console import Console

import mplang_core as mp
from mplang_core.errors import AdmissionError


def moved(sources: int, times: int, name: str = "program") -> mp.Program:
    """Return a program that adds many inputs up, and moves the sum to and fro."""
    kinds = [mp.MPType(mp.TensorType("f32"), mp.Mask.of(0))] * sources

    def program(*given):
        total = given[0]
        for each in given[1:]:
            total = mp.invoke(dialect.add, total, each)
        for _ in range(times):
            total = mp.put("P0", mp.put("P1", total))
        return total

    program.__name__ = name
    return mp.compile(program, *kinds, cluster_spec=mp.ClusterSpec.simple(2))


@pytest.mark.parametrize(
    ("sources", "times"),
    [(1, MAX_EFFORT // PER_OP // 2), (300, 1500)],
    ids=["many ops", "many sources"],
)
def test_what_would_take_long_is_refused_by_one_number(sources, times):
    with pytest.raises(AdmissionError, match=r"too complex to compute.*more than 2,500,000 steps"):
        mp.analysis.disclosure(moved(sources, times))


def test_rows_of_wide_tables_count_by_what_they_tell():
    """A program of some hundred kilobytes made a table of some hundred megabytes."""
    kind = mp.TableType(tuple((f"column_{i}", "int64") for i in range(1000)))

    def program(given):
        for _ in range(400):
            given = mp.put("P0", mp.put("P1", given))
        return given

    made = mp.compile(
        program, mp.MPType(kind, mp.Mask.of(0)), cluster_spec=mp.ClusterSpec.simple(2)
    )
    with pytest.raises(AdmissionError, match="columns of tables that are moved"):
        mp.analysis.disclosure(made)


def test_the_refusal_quotes_the_name_of_the_program():
    program = moved(300, 1500, name="pay, approved. It")
    with pytest.raises(AdmissionError, match=r'what "pay, approved\. It" discloses is too complex'):
        mp.analysis.disclosure(program)


def test_many_sources_or_many_ops_are_fine():
    assert len(mp.analysis.disclosure(moved(300, 5)).rows) > 10
    assert len(mp.analysis.disclosure(moved(1, 1500)).rows) > 3000


def test_a_long_table_has_all_rows_in_a_terminal():
    rows = [[f"row {i}", "x" * 90] for i in range(MAX_FOLDED + 1)]
    file = io.StringIO()
    Console(file=file, width=80, force_terminal=True, color_system="standard").print(
        TextTable("long", ["name", "text"], rows, alerts=[2]).rich()
    )
    lines = file.getvalue().splitlines()
    assert lines[0] == "long"
    assert [part for line in lines for part in re.findall(r"row (\d+)", line)] == [
        str(i) for i in range(MAX_FOLDED + 1)
    ]
    assert [line for line in lines if "\x1b[31m" in line] == [lines[4]]

"""What is asked for disclosures, and how they are shown."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest
from disclosure_rows import SCALAR, at, trace
from rich.console import Console

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import MPLangError, TraceError, VerifyError


def test_programs_and_functions_are_taken():
    def program(x):
        return mp.pshfl_s(x, 1, [0])

    traced = trace(program, at(SCALAR, 0))
    compiled = mp.compile(program, at(SCALAR, 0), cluster_spec=mp.ClusterSpec.simple(2))
    found = [analysis.disclosure(subject) for subject in (traced, traced.program, compiled)]
    assert found[0] == found[1] == found[2]
    assert found[0].digest == traced.program.digest


@pytest.mark.parametrize("ask", [analysis.disclosure, analysis.costs, analysis.graph])
def test_others_are_refused(ask):
    for subject in (7, lambda x: x, mp.compile(lambda x: x)):
        with pytest.raises(TraceError):
            ask(subject)
    wrong = mp.parse('program "p" on {0} (%0: i64[]@{5}) {\n return %0\n}')
    with pytest.raises(VerifyError):
        ask(wrong)
    assert issubclass(VerifyError, MPLangError)


def hostile() -> mp.Program:
    return mp.parse(r"""
        program "<script>alert(1)</script>" on {0, 1} (%0: i64[]@{0}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1} at "<img>[red].py:1"
          return %1
        }""")


def test_it_is_plain_data_and_survives_json():
    table = analysis.disclosure(hostile())
    assert json.loads(table.to_json()) == table.to_dict()
    assert list(table.rows[0].to_dict()) == [
        "what", "from", "to", "type", "payload", "form", "bytes",
        "inputs", "discloses", "line", "when", "lines", "data", "guards", "protocol",
    ]  # fmt: skip
    assert table.of(0) == table.rows
    assert table.of(1) == ()


def test_it_is_shown_as_text_and_in_a_terminal():
    table = analysis.disclosure(hostile())
    said, matrix, picture, rows = str(table).split("\n\n")
    assert said.splitlines() == [
        'Who learns what by what "<script>alert(1)</script>" sends, reveals and returns',
        *(f"  - {text}" for text in table.sentences()),
    ]
    assert matrix == str(table.matrix())
    assert picture == str(table.picture())
    assert rows.splitlines() == [
        'What "<script>alert(1)</script>" discloses',
        "  what    from  to    type   form   bytes  inputs  discloses  line               when",
        '! move    0     1     i64[]  plain  8      0       0          "<img>[red].py":1  once',
        '! result  1     host  i64[]  plain  8      0       0          "<img>[red].py":1  once',
    ]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    shown = console.export_text()
    assert '"<img>[red].py":1' in shown
    assert table.sentences()[0] in shown
    assert "DISCLOSES party 0's data" in shown


@pytest.mark.parametrize("ask", [analysis.disclosure, analysis.costs])
def test_pages_escape_what_they_show_and_load_nothing(ask):
    for page in (ask(hostile()).to_html(), ask(hostile())._repr_html_()):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert not re.search(r"(src|href)\s*=|https?:|@import|url\(", page)
    assert "default-src 'none'" in ask(hostile()).to_html()


def test_a_page_permits_its_own_style_and_nothing_else():
    page = analysis.disclosure(hostile()).to_html()
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="([^"]*)"', page)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = [b64encode(sha256(each.encode()).digest()).decode() for each in styles]
    directives = dict(each.split(maxsplit=1) for each in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["style-src"].split() == [f"'sha256-{each}'" for each in hashes]
    assert "unsafe" not in policy
    assert not re.search(r"<[^>]*\s(style|on\w+)\s*=", page)
    assert "<script" not in page

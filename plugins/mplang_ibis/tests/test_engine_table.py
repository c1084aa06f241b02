"""The table of differences in the reference is that of the code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mplang_ibis.engines import DIFFERENCES, ENGINES, TITLES, refusal

from mplang_core import TableType
from mplang_core.errors import ConfigError

DOCUMENT = Path(__file__).parents[3] / "docs/engines.md"
TITLE = "## What is refused\n\n"
HEAD = f"| what | DuckDB | {' | '.join(TITLES.values())} | write |\n"
HEAD += "| --- " * (3 + len(TITLES)) + "|\n"


def rows():
    """Yield the rows of the table, in Markdown."""
    for row in DIFFERENCES.values():
        others = [row.others[each].does if each in row.others else "the same" for each in TITLES]
        cells = (row.what, row.duckdb, *others, row.instead)
        yield "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |\n"


def test_the_reference_has_the_table():
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = HEAD + "".join(rows())
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        DOCUMENT.write_text(text.partition(TITLE)[0] + TITLE + wanted)
    assert wanted in DOCUMENT.read_text(encoding="utf-8")


def test_engines_have_titles():
    assert list(TITLES) == list(ENGINES)


def test_an_engine_that_is_unknown_is_an_error():
    with pytest.raises(ConfigError, match="no engine 'oracle'; there are postgresql, spark"):
        refusal("SELECT 1 AS x FROM t", "oracle", {"t": TableType((("i", "int64"),))})

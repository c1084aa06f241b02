"""The page of each code: its wrong program is told as it says, and its right one runs."""

from __future__ import annotations

import importlib.util
import re

import pytest

if not importlib.util.find_spec("mplang_cli"):
    pytest.skip("pages come with the command line", allow_module_level=True)

from error_page import PARTS, closed, fits, parts_of, run, told_by
from mplang_cli.explain import error_pages
from packages import ROOT

PAGES = error_pages()
NOT_RUN: dict[str, str] = {}
"""By code the test that reaches it, where it takes what no page can show: a peer, a bad machine."""

RUN = [code for code in PAGES if code not in NOT_RUN]


@pytest.mark.needs("jax", "spu", "crypto", "ibis", "http", "hello", "grpc")
@pytest.mark.parametrize("code", RUN)
def test_a_page_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, names = PAGES[code], {"__name__": "__main__"}
    parts = parts_of(page)
    try:
        for block in parts[""]:
            run(block, page, names)
        found, message = told_by(parts["Wrong"], page, names)
        assert found == code, message
        (shown,) = [block.text for block in parts["Wrong"] if block.language == "text"]
        assert fits(message, shown), message
        for block in parts["Right"]:
            run(block, page, names)
    finally:
        closed(names)


@pytest.mark.parametrize("code", PAGES)
def test_a_page_has_its_parts(code):
    page = PAGES[code]
    assert re.fullmatch(r"[a-zA-Z].{10,60}", page.title)
    assert max(map(len, page.text.splitlines())) <= 80
    parts = parts_of(page)
    if code in RUN:
        assert [name for name in parts if name] == [*PARTS]
        assert all(any(b.language != "text" for b in parts[name]) for name in PARTS)


@pytest.mark.parametrize("code", NOT_RUN)
def test_what_no_page_runs_is_reached_by_a_test(code):
    file, _, name = NOT_RUN[code].partition("::")
    assert re.search(rf"^ *def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert "Wrong" not in parts_of(PAGES[code])

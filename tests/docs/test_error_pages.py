"""The page of each code: its wrong program is told as it says, and its right one runs."""

from __future__ import annotations

import os
import re
from unittest import mock

import pytest
from error_page import PARTS, closed, fits, parts_of, run, told_by
from mplang_cli.explain import error_pages
from packages import ROOT

PAGES = error_pages()
NOT_RUN = {
    "A004": "plugins/mplang_worker/tests/test_hostile_programs.py"
    "::test_an_op_that_is_not_allowed_here",
    "A007": "plugins/mplang_spu/tests/test_spu.py"
    "::test_a_worker_refuses_the_protocol_for_debugging",
    "A008": "plugins/mplang_worker/tests/test_certificates.py"
    "::test_credentials_of_the_wrong_authority",
    "C009": "plugins/mplang_worker/tests/test_settings.py::test_versions_that_differ",
    "R014": "plugins/mplang_spu/tests/test_compiler.py::"
    "test_a_user_reads_the_failure_in_the_error_and_libspu_is_not_called_again",
    "R015": "plugins/mplang_spu/tests/test_public_operands.py::"
    "test_operands_that_differ_at_one_member_end_the_run",
    "R017": "plugins/mplang_worker/tests/test_native_plugin.py::"
    "test_what_ends_it_ends_no_engine_and_no_other_service",
    "L003": "plugins/mplang_simulator/tests/test_simulator.py::test_an_abort_wakes_those_who_wait",
    "L004": "plugins/mplang_worker/tests/test_hostile_link.py::test_a_peer_that_does_not_come",
}
"""By code the test that reaches it, where it takes what no page can show: a peer, a bad machine."""

RUN = [code for code in PAGES if code not in NOT_RUN]


@pytest.mark.needs("jax", "spu", "crypto", "ibis", "http", "hello", "grpc")
@pytest.mark.parametrize("code", RUN)
@mock.patch.dict(os.environ)  # a page may set a variable
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

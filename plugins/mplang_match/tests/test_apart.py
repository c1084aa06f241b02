"""Processes of matchers in a simulator, and the folders that they leave."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from matching import CLUSTER, check, matched, table
from mplang_match import apart

import mplang_core as mp
from mplang_core.errors import PartyError

A, B = ["a", "b", "c"], ["b", "c", "d"]


def run():
    data = {"bank": {"keys": table(A)}, "shop": {"keys": table(B)}}
    with mp.Simulator(CLUSTER, data=data) as sim:
        check(matched(sim), A, B)


def test_folders_of_processes_that_were_killed_are_removed_and_others_are_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(apart, "MEMORY", str(tmp_path))
    monkeypatch.setattr(apart, "_idle", type(apart._idle)())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"{apart.PREFIX}{ended.pid}-left"
    mine = tmp_path / f"{apart.PREFIX}{os.getpid()}-mine"
    for each in (left, mine):
        each.mkdir()
        (each / "tokens.csv").write_text("token")
    run()
    assert not left.exists()
    assert mine.exists()


def test_a_matcher_that_ends_is_told_and_the_next_match_has_another(monkeypatch):
    run()
    for process in list(apart._idle):
        process._end.peek()[2][0].kill()
    with pytest.raises(PartyError, match="the process of the matcher has ended"):
        run()
    apart._idle.clear()
    run()

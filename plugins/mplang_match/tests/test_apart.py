"""Processes of matchers in a simulator, and the folders that they leave."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from matching import CLUSTER, check, matched, table
from mplang_confinement import MemoryFolders, memory_folders
from mplang_match import apart

import mplang_core as mp
from mplang_core.errors import PartyError

A, B = ["a", "b", "c"], ["b", "c", "d"]


def run():
    data = {"bank": {"keys": table(A)}, "shop": {"keys": table(B)}}
    with mp.Simulator(CLUSTER, data=data) as sim:
        check(matched(sim), A, B)


def test_a_process_that_starts_removes_what_killed_ones_have_left(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_folders, "MEMORY", tmp_path)
    monkeypatch.setattr(apart, "_idle", type(apart._idle)())
    left = tmp_path / f"{memory_folders.PREFIX}left"
    left.mkdir()
    (left / "tokens.csv").write_text("token")
    with closing(MemoryFolders()) as others:
        run()
        assert not left.exists()
        assert os.path.isdir(others.path)
        for process in apart._idle:
            process._end()
    assert not list(tmp_path.iterdir())


def test_a_matcher_that_ends_is_told_and_the_next_match_has_another(monkeypatch):
    run()
    for process in list(apart._idle):
        process._end.peek()[2][0].kill()
    with pytest.raises(PartyError, match="the process of the matcher has ended"):
        run()
    apart._idle.clear()
    run()

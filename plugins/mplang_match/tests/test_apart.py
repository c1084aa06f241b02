"""Processes of matchers in a simulator, and the folders that they leave."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from matching import CLUSTER, check, matched, table
from mplang_confinement import MemoryFolders, memory_folders
from mplang_match import apart
from mplang_match.service import MatchRequest

import mplang_core as mp
from mplang_core.errors import CommError, PartyError
from mplang_core.ext import Communicator

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


class Failing(Communicator):
    """Communicator to a party that has failed."""

    rank = 0

    def send(self, to_rank, key, data):
        raise CommError("party 1 has failed: there are more keys than 50")

    recv = send

    def open(self, run):
        pass

    def close(self, run):
        pass

    def abort(self, run, reason):
        pass


def test_who_fails_is_told_where_another_waits_for_it():
    request = MatchRequest(protocol="RR22", key="r/1", peer=1, learns=True)
    tokens = b"".join(b"%032x\n" % i for i in range(3))
    with pytest.raises(CommError, match=r"party 1 has failed: there are more keys than 50"):
        apart.match(Failing(), request, memoryview(tokens))

"""Parties that disagree on a predicate: the log of each tells it."""

from __future__ import annotations

import pytest
from log_reading import LogReader
from mplang_http import LocalCluster

import mplang_core as mp
from mplang_core.errors import PartyError


@pytest.mark.long("three workers, and what each of them logs")
def test_each_log_tells_that_the_parties_disagree(tmp_path):
    def program(yes, no):
        one = mp.simp.pcall_static((0,), lambda v: v, yes)
        others = mp.simp.pcall_static((1, 2), lambda v: v, no)
        mine = mp.pconv([one, others])
        return mp.uniform_cond(mine, lambda: mp.constant(1), lambda: mp.constant(2))

    options = {"log": str(tmp_path), "log_level": "debug"}
    with LocalCluster(3, **options) as cluster, mp.connect("http", cluster.spec) as host:
        with mp.with_ctx(host):
            yes, no = mp.constant(True, parties=0), mp.constant(False, parties=[1, 2])
        logs = [LogReader(tmp_path / f"node{rank}.log") for rank in range(3)]
        with pytest.raises(PartyError, match=r"simp\.uniform_cond at test_predicates\.py:\d+"):
            mp.evaluate(host, program, yes, no)
        for log in logs:
            log.wait_for("the parties disagree on a predicate")

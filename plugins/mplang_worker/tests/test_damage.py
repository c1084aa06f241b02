"""A kernel that may have harmed its engine's memory: the failure is told, then the engine ends."""

from __future__ import annotations

import os
from pathlib import Path

import damaging_ops
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_testing.waiting import wait_until
from processes import engine_of

import mplang_core as mp
from mplang_core.errors import MPLangError


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    kit = ("mplang_testing.dialect", "damaging_ops")
    with LocalCluster(2, imports=kit, log=str(tmp_path), log_level="debug") as made:
        yield made


def works(cluster) -> None:
    with mp.connect("http", cluster.spec) as host:
        np.testing.assert_array_equal(
            mp.fetch(host, mp.evaluate(host, lambda: mp.reveal(mp.put("P1", 1)))), 1
        )


def test_the_engine_ends_once_the_failure_is_told(cluster, tmp_path):
    with mp.connect("http", cluster.spec) as host:
        engine = engine_of(cluster.workers[1].pid)

        def program():
            return mp.invoke(damaging_ops.fail, mp.constant(np.float64(1), parties=1))

        with pytest.raises(MPLangError, match="party 1 failed in damaging.fail at test_damage.py:"):
            mp.evaluate(host, program, mode="launch")
        log = tmp_path / "node1.log"
        wait_until(lambda: not os.path.exists(f"/proc/{engine}"), "the engine is gone")
    assert "may have harmed its memory" in log.read_text()
    assert "a compiler freed what is in use" in log.read_text()
    works(cluster)

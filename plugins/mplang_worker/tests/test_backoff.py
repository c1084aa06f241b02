"""Processes that end again and again are started ever more rarely, and probes say so."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_testing.waiting import wait_until
from mplang_worker.process import backoff
from mplang_worker.process.backoff import Backoff
from processes import children, fork_server_of


def test_delays_grow_until_one_lives_for_a_while(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(backoff.time, "monotonic", lambda: now[0])
    made, found = Backoff(), []
    for lived in (1, 1, 1, 1, 59, 61, 1):
        made.begun()
        now[0] += lived
        found.append(made.ended())
    assert found == [0.0, 0.5, 1.0, 2.0, 4.0, 0.0, 0.5]
    assert [made.ended() for _ in range(20)][-1] == 30.0


def ready(worker):
    return worker.ask("GET", "/ready").status == 200


@pytest.mark.slow("a process is killed and started again twice: 10 s")
def test_a_warm_process_that_dies_again_soon_is_waited_for_longer():
    """Noticed without a session that needs it; the front is alive and not ready meanwhile."""
    with LocalCluster(1) as cluster:
        worker, took = RawWorker(cluster), []
        for _ in range(2):
            server = fork_server_of(worker.front)
            begin = time.monotonic()
            os.kill(server, signal.SIGKILL)
            wait_until(lambda: not ready(worker))
            assert worker.ask("GET", "/health").status == 200
            wait_until(lambda gone=server: children(worker.front) not in ([], [gone]))
            took.append(time.monotonic() - begin)
            wait_until(lambda: ready(worker))
        assert took[1] > 0.5
        worker.works()


DIES = """
import os
os.register_at_fork(after_in_child=lambda: os._exit(3))
"""


@pytest.mark.long("engines start after 0.5, 1 and 2 s")
def test_a_worker_whose_engines_die_at_once_is_not_ready(tmp_path, monkeypatch):
    (tmp_path / "dies_at_fork.py").write_text(DIES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with LocalCluster(1, imports=("dies_at_fork",)) as cluster:
        worker = RawWorker(cluster)
        body = json.dumps({"rank": 0, "parties": [worker.party()]}).encode()
        seconds = []
        for _ in range(4):
            found = worker.ask("PUT", "/v1/sessions/new", body)
            assert found.error == (503, "starting")
            begin = time.monotonic()
            wait_until(lambda: ready(worker))
            seconds.append(time.monotonic() - begin)
        assert seconds[0] < 0.4
        assert seconds[3] == pytest.approx(2.0, abs=0.5)

"""Shutdown of a worker: SIGTERM lets jobs end and takes no new work; a second signal ends it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import gated_ops
import numpy as np
import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, in_time, wait_until

import mplang_core as mp
from mplang_core.errors import PartyError, ShutdownError

KIT = ("mplang_testing.dialect", "gated_ops")


OPS = ("kit.late", "gated.wait")


def slow(seconds, party=0):
    return lambda x: mp.invoke(dialect.late, x, party=party, seconds=seconds)


@contextlib.contextmanager
def workers(count=1, drain=NEVER):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.path.dirname(__file__))
        with LocalCluster(count, imports=KIT, timeouts={"drain": drain, "cancel": 0.5}) as cluster:
            yield cluster


@pytest.fixture
def gate(tmp_path):
    """Return the file that lets ``gated`` jobs end."""
    return tmp_path / "gate"


def gated(gate):
    return lambda x: mp.invoke(gated_ops.wait, x, gate=str(gate))


@contextlib.contextmanager
def running(host, fn):
    """Run a program in another thread, and return its future once its job runs."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: mp.fetch(host, mp.evaluate(host, fn, np.int64(4))))
        wait_until(lambda: any(each.op in OPS for each in host.progress()))
        yield future


def terminate(cluster, rank=0):
    os.kill(cluster.workers[rank].pid, signal.SIGTERM)


def code_of(cluster, rank=0):
    return cluster.workers[rank].wait(DEADLINE)


def test_a_worker_that_drains_takes_no_new_work(gate):
    """Jobs that run end, and their results are fetched."""
    with workers() as cluster, mp.connect("http", cluster.spec) as host:
        worker = RawWorker(cluster)
        mine = worker.open()
        with running(host, gated(gate)) as future:
            terminate(cluster)
            wait_until(lambda: worker.ask("GET", "/ready").status == 503)
            assert worker.ask("GET", "/ready").json == {"state": "draining"}
            health = worker.ask("GET", "/health")
            assert (health.status, health.json["state"]) == (200, "draining")
            body = json.dumps({"rank": 0, "parties": [worker.party()]}).encode()
            with worker.connect() as sock:
                head = "PUT /v1/sessions/new HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                head += f"Content-Length: {len(body)}\r\n\r\n"
                sock.sendall(head.encode() + body)
                found = sock.makefile().read()
            assert found.startswith("HTTP/1.1 503 ")
            assert "\nretry-after: " in found
            assert "ShutdownError" in found
            refused = worker.submit(mine, b"any", np.int64(1))
            assert refused.error == (503, "ShutdownError")
            with pytest.raises(PartyError) as caught:
                mp.connect("http", cluster.spec)
            assert isinstance(caught.value.__cause__, ShutdownError)
            gate.touch()
            assert future.result(DEADLINE) == [4]
        assert code_of(cluster) == 0


def test_a_job_that_does_not_end_in_time_is_ended_with_an_error_that_says_why():
    """At the party that shuts down, and so for the coordinator; later runs say the same."""
    with workers(2, drain=0.5) as cluster, mp.connect("http", cluster.spec) as host:
        with running(host, slow(NEVER, party=1)) as future:
            terminate(cluster, 1)
            with pytest.raises(PartyError, match="node1 was shut down by its owner") as caught:
                future.result(DEADLINE)
        assert isinstance(caught.value.__cause__, ShutdownError)
        assert caught.value.rank == 1
        assert "timeouts.drain" in str(caught.value)
        assert code_of(cluster, 1) == 0
        with pytest.raises(PartyError) as caught:
            mp.evaluate(host, slow(0.0), np.int64(4))
        assert isinstance(caught.value.__cause__, ShutdownError)


def test_a_coordinator_that_did_nothing_then_is_told_later():
    with workers() as cluster, mp.connect("http", cluster.spec) as host:
        terminate(cluster)
        assert code_of(cluster) == 0
        with pytest.raises(PartyError) as caught:
            mp.evaluate(host, slow(0.0), np.int64(4))
        assert isinstance(caught.value.__cause__, ShutdownError)
        cluster.restart(0)
        assert mp.fetch(host, mp.evaluate(host, slow(0.0), np.int64(4))) == [4]


def test_without_sessions_it_ends_at_once():
    with workers() as cluster, in_time():
        terminate(cluster)
        assert code_of(cluster) == 0


@pytest.mark.parametrize(
    "second",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow("starts a worker for the other signal")),
    ],
)
def test_a_second_signal_ends_it_at_once(second):
    with (
        workers() as cluster,
        mp.connect("http", cluster.spec) as host,
        running(host, slow(NEVER)) as future,
    ):
        terminate(cluster)
        wait_until(lambda: RawWorker(cluster).ask("GET", "/ready").status == 503)
        with in_time():
            os.kill(cluster.workers[0].pid, second)
            assert code_of(cluster) == 0
        with pytest.raises(PartyError):
            future.result(DEADLINE)


def test_interrupting_ends_at_once():
    with (
        workers() as cluster,
        mp.connect("http", cluster.spec) as host,
        running(host, slow(NEVER)) as future,
    ):
        os.kill(cluster.workers[0].pid, signal.SIGINT)
        assert code_of(cluster) == 0
        with pytest.raises(PartyError):
            future.result(DEADLINE)


def test_a_signal_to_the_whole_group_drains_too(gate):
    """As of a supervisor that signals all processes: engines leave the end to the front."""
    with workers() as cluster, mp.connect("http", cluster.spec) as host:
        with running(host, gated(gate)) as future:
            cluster.signal(0, signal.SIGTERM)
            wait_until(lambda: RawWorker(cluster).ask("GET", "/ready").status == 503)
            gate.touch()
            assert future.result(DEADLINE) == [4]
        assert code_of(cluster) == 0

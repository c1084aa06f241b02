"""Shutdown of a worker: SIGTERM lets jobs end and takes no new work; a second signal ends it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_testing import dialect
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import PartyError, ShutdownError

KIT = ("mplang_testing.dialect",)


def slow(seconds, party=0):
    return lambda x: mp.invoke(dialect.late, x, party=party, seconds=seconds)


@contextlib.contextmanager
def workers(count=1, drain=20.0):
    with LocalCluster(count, imports=KIT, timeouts={"drain": drain, "cancel": 0.5}) as cluster:
        yield cluster


@contextlib.contextmanager
def running(host, fn):
    """Run a program in another thread, and return its future once its job runs."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: mp.fetch(host, mp.evaluate(host, fn, np.int64(4))))
        wait_until(lambda: any(each.op == "kit.late" for each in host.progress()))
        yield future


def terminate(cluster, rank=0):
    os.kill(cluster.workers[rank].pid, signal.SIGTERM)


def code_of(cluster, rank=0, seconds=10.0):
    return cluster.workers[rank].wait(seconds)


@pytest.mark.long("a worker waits for a job of 2 s")
def test_a_worker_that_drains_takes_no_new_work():
    """Jobs that run end, and their results are fetched."""
    with workers() as cluster, mp.connect("http", cluster.spec) as host:
        worker = RawWorker(cluster)
        mine = worker.open()
        with running(host, slow(2.0)) as future:
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
            assert future.result() == [4]
        assert code_of(cluster) == 0


def test_a_job_that_does_not_end_in_time_is_ended_with_an_error_that_says_why():
    """At the party that shuts down, and so for the coordinator; later runs say the same."""
    with workers(2, drain=0.5) as cluster, mp.connect("http", cluster.spec) as host:
        with running(host, slow(60.0, party=1)) as future:
            terminate(cluster, 1)
            with pytest.raises(PartyError, match="node1 was shut down by its owner") as caught:
                future.result(20)
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
    with workers() as cluster:
        begin = time.monotonic()
        terminate(cluster)
        assert code_of(cluster) == 0
        assert time.monotonic() - begin < 1.5


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
        running(host, slow(60.0)) as future,
    ):
        terminate(cluster)
        wait_until(lambda: RawWorker(cluster).ask("GET", "/ready").status == 503)
        begin = time.monotonic()
        os.kill(cluster.workers[0].pid, second)
        assert code_of(cluster) == 0
        assert time.monotonic() - begin < 3
        with pytest.raises(PartyError):
            future.result(20)


def test_interrupting_ends_at_once():
    with (
        workers() as cluster,
        mp.connect("http", cluster.spec) as host,
        running(host, slow(60.0)) as future,
    ):
        os.kill(cluster.workers[0].pid, signal.SIGINT)
        assert code_of(cluster, seconds=5) == 0
        with pytest.raises(PartyError):
            future.result(20)


@pytest.mark.slow("a worker waits for a job of 2 s")
def test_a_signal_to_the_whole_group_drains_too():
    """As of a supervisor that signals all processes: engines leave the end to the front."""
    with workers() as cluster, mp.connect("http", cluster.spec) as host:
        with running(host, slow(2.0)) as future:
            cluster.signal(0, signal.SIGTERM)
            assert future.result() == [4]
        assert code_of(cluster) == 0

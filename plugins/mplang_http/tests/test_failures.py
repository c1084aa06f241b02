"""Whatever breaks is named at once, everyone ends, and the workers go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PartyError, RunError
from mplang_core.testing import dialect


def forever(x):
    """Parties that pass a value around until they are stopped."""
    below = lambda i: mp.invoke(dialect.less, i, mp.constant(np.int64(2**62)))  # noqa: E731

    def turn(i):
        moved = mp.pshfl_s(mp.pshfl_s(i, [0, 1, 2], [1, 2, 0]), [0, 1, 2], [2, 0, 1])
        return mp.invoke(dialect.add, moved, mp.constant(np.int64(0)))

    return mp.while_loop(below, turn, x)


def double(x):
    return mp.invoke(dialect.add, x, x)


def works(host):
    assert mp.fetch(host, mp.evaluate(host, double, np.int64(4))) == [8, 8, 8]


def interrupted(host, act, after=0.5):
    """Act while a program runs; return the error, and how long it took to come."""
    begin = []

    def later():
        time.sleep(after)
        begin.append(time.monotonic())
        act()

    thread = threading.Thread(target=later)
    thread.start()
    with pytest.raises(PartyError) as caught:
        mp.evaluate(host, forever, np.int64(1))
    thread.join()
    return caught.value, time.monotonic() - begin[0]


def engine_of(front):
    """The engine of a worker: its front's only child."""
    with open(f"/proc/{front.pid}/task/{front.pid}/children") as children:
        (pid,) = map(int, children.read().split())
    return pid


def test_an_engine_that_is_killed(three):
    with mp.connect("http", three.spec) as host:
        works(host)
        error, took = interrupted(
            host, lambda: os.kill(engine_of(three.workers[1]), signal.SIGKILL)
        )
        assert error.rank == 1
        assert "the engine of worker node1 ended by SIGKILL" in str(error)
        assert took < 2
        deadline = time.monotonic() + 20
        while True:  # until another engine is up
            try:
                works(host)
                break
            except RunError:
                assert time.monotonic() < deadline
                time.sleep(0.2)


def test_a_worker_that_is_killed_and_comes_back(three):
    with mp.connect("http", three.spec) as host:
        error, took = interrupted(host, lambda: three.signal(2, signal.SIGKILL))
        assert error.rank == 2
        assert "worker node2" in str(error)
        assert "does not answer" in str(error)
        assert took < 2
        with pytest.raises(PartyError, match="worker node2 .* does not answer"):
            works(host)
        three.restart(2)
        works(host)


def test_a_worker_that_is_stopped(three):
    with mp.connect("http", three.spec, patience=1.0) as host:
        error, took = interrupted(host, lambda: three.signal(0, signal.SIGSTOP))
        assert error.rank == 0
        assert "gave no sign of life" in str(error)
        assert "was in simp." in str(error)
        assert took < 5
        three.signal(0, signal.SIGCONT)
        works(host)


def test_an_engine_that_is_stopped_does_not_stop_the_front(three):
    from mplang_http.commands import status

    engine = engine_of(three.workers[0])
    os.kill(engine, signal.SIGSTOP)
    try:
        time.sleep(2)
        begin = time.monotonic()
        (row, *_) = status(three.spec)
        assert row["state"] == "ready"
        assert time.monotonic() - begin < 1
    finally:
        os.kill(engine, signal.SIGCONT)
    with mp.connect("http", three.spec) as host:
        works(host)


def test_a_host_that_is_interrupted(three):
    """Ctrl-C at the host ends the run at the workers, which go on."""
    with mp.connect("http", three.spec) as host:
        main = threading.main_thread().ident
        threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            mp.evaluate(host, forever, np.int64(1))
        works(host)


def test_a_host_that_is_lost_is_forgotten():
    """A coordinator that dies leaves no job and no value behind."""
    from mplang_http import LocalCluster
    from mplang_http.client import WorkerClient

    lease = {"timeouts": {"lease": 2.0}, "imports": ("mplang_core.testing.dialect",)}
    with LocalCluster(3, **lease) as cluster:
        host = mp.connect("http", cluster.spec)
        kept = mp.evaluate(host, double, np.int64(4))
        node = cluster.spec.nodes[0]
        client = WorkerClient(node.name, node.address, None, 3.0)
        path = ("v1", "sessions", host.session, "jobs")
        assert client.ask("GET", *path)["values"] == 1
        host._keeper._over.set()  # as if it were gone
        time.sleep(5)
        with pytest.raises(RunError, match="no session"):
            client.ask("GET", *path)
        with pytest.raises(RunError, match="no session"):
            mp.fetch(host, kept)
        client.close()


def test_values_are_freed(three):
    from mplang_http.client import WorkerClient

    node = three.spec.nodes[1]
    client = WorkerClient(node.name, node.address, None, 3.0)
    with mp.connect("http", three.spec) as host:
        path = ("v1", "sessions", host.session, "jobs")
        for i in range(50):
            mp.evaluate(host, double, np.int64(i))
        time.sleep(2.5)
        assert client.ask("GET", *path)["values"] == 0
        kept = mp.evaluate(host, double, np.int64(1))
        time.sleep(2.5)
        assert client.ask("GET", *path)["values"] == 1
        del kept
    with pytest.raises(RunError, match="no session"):
        client.ask("GET", *path)
    client.close()


def test_two_coordinators_at_once(five):
    """No value strays between two hosts that run many jobs."""
    cluster = mp.ClusterSpec(five.spec.nodes[:3])
    wrong = []

    def many(start):
        with mp.connect("http", cluster) as host:
            for i in range(start, start + 100):
                found = mp.fetch(host, mp.evaluate(host, double, np.int64(i)))
                if found != [2 * i] * 3:
                    wrong.append((i, found))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(many, (0, 1000)))
    assert not wrong


def test_a_host_tells_which_worker_is_not_there():
    nodes = [{"name": "node0", "address": "http://127.0.0.1:9"}]
    with pytest.raises(PartyError, match=r"party 0 .*node0 at http://127.0.0.1:9 does not answer"):
        mp.connect("http", mp.ClusterSpec(nodes))


def test_nodes_need_addresses():
    with pytest.raises(ValueError, match="the node node0 has no address"):
        mp.connect("http", mp.ClusterSpec.simple(2))

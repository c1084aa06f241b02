"""Failure tests: stopped engines, unreachable workers, released values."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from mplang_http.coordinator import failure_report
from mplang_http.coordinator.client import WorkerClient
from mplang_http.coordinator.failure_report import party_locations
from mplang_http.coordinator.remote_worker import RemoteWorker
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, in_time, stays, wait_until
from processes import engine_of, fork_server_of

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError, RunError
from mplang_core.ext import AbortedError, PartyState


def double(x):
    return mp.invoke(dialect.add, x, x)


def works(host):
    found = mp.fetch(host, mp.evaluate(host, double, np.int64(4)))
    assert found == [8] * host.world_size


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_an_engine_that_is_stopped_does_not_stop_the_front(three_workers):
    from mplang_http.cli.status import cluster_status

    with mp.connect("http", three_workers.spec), stopped(engine_of(three_workers.workers[0].pid)):
        with in_time():
            (row, *_) = cluster_status(three_workers.spec, patience=NEVER)
        assert row["state"] == "ready"
    with mp.connect("http", three_workers.spec) as host:
        works(host)


def test_an_engine_that_is_stopped_while_large_values_go_to_it(three_workers, monkeypatch):
    """A worker that is blocked in a send still serves other sessions."""
    monkeypatch.setattr(failure_report, "CAUSE_TIMEOUT", DEADLINE)  # a slow machine tells it late

    def again_and_again(x):
        below = lambda s: mp.invoke(dialect.less, s[0], mp.constant(np.int64(2**62)))  # noqa: E731

        def turn(s):
            i, x, _ = s
            return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), x, mp.put("P1", x)

        x = mp.put("P0", x)
        return mp.while_loop(below, turn, (mp.constant(np.int64(0)), x, mp.put("P1", x)))

    with mp.connect("http", three_workers.spec) as host:
        works(host)
        engine = engine_of(three_workers.workers[1].pid)
        with contextlib.ExitStack() as stack:

            def stop_amid_values():
                wait_until(lambda: host.progress()[1].op == "simp.shuffle_static")
                stack.enter_context(stopped(engine))

            stop = threading.Thread(target=stop_amid_values)
            stop.start()
            with pytest.raises(PartyError, match="its process was stopped by a signal") as error:
                mp.evaluate(host, again_and_again, np.zeros(4 << 20))
            stop.join()
            assert error.value.rank == 1
            nodes = (three_workers.spec.nodes[0], three_workers.spec.nodes[2])
            others = mp.ClusterSpec([{"name": n.name, "address": n.address} for n in nodes])
            with mp.connect("http", others) as another:
                works(another)
        works(host)


def works_again(host):
    try:
        works(host)
    except (PartyError, RunError):
        return False
    return True


def test_a_worker_outlives_the_process_that_forks_its_engine(three_workers):
    front = three_workers.workers[2].pid
    server = fork_server_of(front)
    with mp.connect("http", three_workers.spec) as host:
        works(host)
        engine = engine_of(front)
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{engine}").exists(), "the end of the engine with it")
        wait_until(lambda: works_again(host))
        assert engine_of(front) != engine


def test_values_are_freed(five_workers):
    node = five_workers.spec.nodes[1]
    with (
        contextlib.closing(WorkerClient(node.name, node.address, None, DEADLINE)) as client,
        mp.connect("http", mp.ClusterSpec(five_workers.spec.nodes[:3])) as host,
    ):

        def held():
            return client.request("GET", "v1", "sessions", host.session, "jobs")["values"]

        for i in range(50):
            mp.evaluate(host, double, np.int64(i))
        kept = mp.evaluate(host, double, np.int64(1))
        wait_until(lambda: held() == 1, "the release of dropped values")
        stays(lambda: held() == 1, 2.0)  # values are released once a second
        assert mp.fetch(host, kept) == [2, 2, 2]
        host.close()
        with pytest.raises(RunError, match="no session"):
            held()


def test_a_host_tells_which_worker_is_not_there():
    nodes = [{"name": "node0", "address": "http://127.0.0.1:9"}]
    with pytest.raises(
        PartyError,
        match=r"party 0 .*node0 at http://127.0.0.1:9 does not answer.*nothing listens there",
    ):
        mp.connect("http", mp.ClusterSpec(nodes))


@pytest.mark.parametrize("answer", [b"[]", b'{"alike": 5}', b'{"alike": {"jax": {}}}', b"<html>"])
def test_a_host_survives_one_that_is_no_worker(answer):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            with pytest.raises((RunError, ConfigError), match=r"invalid response|the same:"):  # noqa: SIM117
                with mp.connect("http", mp.ClusterSpec([{"address": address}])) as host:
                    mp.evaluate(host, double, np.int64(4))
        finally:
            server.shutdown()


def test_nodes_need_addresses():
    with pytest.raises(ValueError, match="the node node0 has no address"):
        mp.connect("http", mp.ClusterSpec.simple(2))


def test_a_run_is_submitted_in_the_generation_that_it_began_in(three_workers, monkeypatch):
    """A failure of one party may start the next generation before all parties are submitted to."""
    with mp.connect("http", three_workers.spec) as host:
        works(host)
        run, before, together = RemoteWorker.run, host._generation, threading.Barrier(3)

        def late(worker, job, recorder):
            together.wait(DEADLINE)  # the jobs of all parties are made
            host._generation = before + 1
            return run(worker, job, recorder)

        with monkeypatch.context() as patch:
            patch.setattr(RemoteWorker, "run", late)
            works(host)
        host._generation = before
        works(host)


def test_a_party_whose_error_comes_too_late_is_where_it_was_last_seen():
    lost, late, told = RunError("it ended"), AbortedError("no answer"), AbortedError("stopped")
    told.op, told.location = "kit.add", "a.py:3"
    states = [PartyState(), PartyState("running", "kit.late", "a.py:7"), PartyState()]
    failures = [(0, lost), (1, late), (2, told)]
    assert list(party_locations(failures, states, 0)) == [
        "party 1 was in kit.late at a.py:7 then", "party 2 was in kit.add at a.py:3 then",
    ]  # fmt: skip

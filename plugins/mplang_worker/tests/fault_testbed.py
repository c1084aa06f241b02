"""Jobs on SPU, and workers and links that are broken amid them."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import socket
import statistics
import threading
import time
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_http.coordinator.client import RefusedError, WorkerClient
from mplang_http.tls.contexts import client_context
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, in_time, pause, wait_until
from processes import engine_of, engines_of

import mplang_core as mp
from mplang_core.errors import PartyError

ROUNDS = int(os.environ.get("MPLANG_FAILURES", "1"))
KIT = ("mplang_testing.dialect",)
FOREVER = 2**62
HERE = r"fault_testbed\.py:\d+"  # where the ops of a job are
POOLS = 20  # threads that the pools of an engine may start


def approach(a, y):
    """Compare and multiply in a loop."""
    return jax.lax.fori_loop(0, 5, lambda _, v: v / 2 + jnp.where(y > v, y, v) / 2, a)


def job(turns, fault_op=lambda i: i):
    """Return a program that calls ``fault_op`` in each of its iterations."""

    def program(x, y):
        x, y = mp.put("P0", x), mp.put("P1", y)

        def below(state):
            return mp.invoke(dialect.less, state[0], mp.constant(np.int64(turns)))

        def turn(state):
            i, a = state
            i = fault_op(i)
            a = mp.device("SP0")(approach)(a, y)
            return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), a

        _, a = mp.while_loop(below, turn, (mp.constant(np.int64(0)), mp.seal(x)))
        return mp.reveal(a, to="P0")

    return program


X, Y = np.float32([1, 2]), np.float32([3, 1])
short, endless = job(2), job(FOREVER)


def works(host):
    found = mp.fetch(host, mp.evaluate(host, short, X, Y))
    np.testing.assert_allclose(found, [3, 2], atol=0.02)


@dataclass
class FaultTestbed:
    """Workers and a host for fault injection, with measured times in seconds.

    Attributes:
        delays: times from a fault to its error.
        end_times: times until the last party has ended its job.
    """

    cluster: LocalCluster
    host: mp.simp.SimpHost
    rng: random.Random
    delays: list[float] = field(default_factory=list)
    end_times: list[float] = field(default_factory=list)

    def clients(self):
        tls, nodes = self.cluster.tls, self.cluster.spec.nodes
        context = None if tls is None else client_context(tls, "http/1.1")
        return [WorkerClient(n.name, n.address, context, DEADLINE) for n in nodes]

    def run_with_fault(self, fault, program=endless):
        """Inject a fault while a program runs, and return the error, which comes in time."""
        with self.fault_during_run(fault), pytest.raises(PartyError) as caught:
            mp.evaluate(self.host, program, X, Y)
        return caught.value

    @contextlib.contextmanager
    def fault_during_run(self, fault, parties=3):
        """Inject a fault after all parties have begun, and measure the time to the error."""
        begin = []

        def later():
            self.wait_begun(parties)
            pause(self.rng.uniform(0, 0.5), "the fault comes at a random moment")
            begin.append(time.monotonic())
            fault()

        thread = threading.Thread(target=later, daemon=True)
        thread.start()
        with in_time():
            yield
        self.delays.append(time.monotonic() - begin[0])
        thread.join()

    def wait_begun(self, parties=3):
        """Wait until each of the first parties is in an op of the session."""
        for client in self.clients()[:parties]:
            with contextlib.closing(client):
                wait_until(functools.partial(self._has_begun, client), client.name)

    def wait_at(self, ops):
        """Wait until each party is in one of these ops of the session."""
        for client in self.clients():
            with contextlib.closing(client):
                wait_until(functools.partial(self._has_begun, client, ops), client.name)

    def _has_begun(self, client, ops=None):
        found = [job["at"]["op"] for job in running(client, self.host.session)]
        return any(op and (ops is None or op in ops) for op in found)

    def wait_all_ended(self, session=None):
        """Wait until no job of the session is active at any party."""
        begin = time.monotonic()
        for client in self.clients():
            with contextlib.closing(client):
                wait_until(
                    lambda client=client: not running(client, session or self.host.session),
                    f"{client.name} has ended its jobs",
                )
        self.end_times.append(time.monotonic() - begin)

    def wait_ready(self, rank):
        """Wait until the engine of a worker is ready."""
        node = self.cluster.spec.nodes[rank]
        with contextlib.closing(WorkerClient(node.name, node.address, None, DEADLINE)) as client:
            wait_until(lambda: client.request("GET", "health")["state"] == "ready")

    def engine(self, rank):
        return engine_of(self.cluster.workers[rank].pid)

    def threads(self):
        """Return the number of threads of each engine; a worker without a session has none."""
        engines = [pid for worker in self.cluster.workers for pid in engines_of(worker.pid)]
        return {pid: count(pid, "Threads") for pid in engines}


def running(client, session):
    try:
        jobs = client.request("GET", "v1", "sessions", session, "jobs")["jobs"]
    except RefusedError as refused:
        if refused.reason not in ("unknown-session", "starting", "engine-ended"):
            raise
        return []
    return [job for job in jobs if job["state"] in ("queued", "running")]


def count(pid, what):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what + ":"))


def spread(values):
    return f"{statistics.median(values):.2f} (at most {max(values):.2f})"


def assert_error(error, rank, *texts, op=r"\w+\.\w+", at=HERE):
    """Assert that an error names the party, the op, the line and the cause."""
    assert error.rank == rank, error
    for text in texts:
        assert re.search(text, str(error)), f"{text!r} is not in: {error}"
    assert re.search(rf"in {op} at {at}", str(error)), error


def rounds():
    """Return the number of each round, and the rank of its faulty party."""
    return ((i, i % 3) for i in range(ROUNDS))


class TcpProxy:
    """TCP proxy in front of a worker, which can cut links."""

    def __init__(self, address):
        self._to = address.removeprefix("http://").split(":")
        self._server = socket.create_server(("127.0.0.1", 0))
        self._links = []
        self._unheard = set()
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                far = socket.create_connection((self._to[0], int(self._to[1])))
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _pass(self, source, sink, first):
        with contextlib.suppress(OSError), source:
            while data := source.recv(1 << 16):
                if first and data.startswith(b"GET /link"):
                    self._links.append((source, sink))
                first = False
                if source not in self._unheard:
                    sink.sendall(data)
        if sink not in self._unheard:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

    def cut_unheard(self):
        """Close the links at the worker; who connected to it hears nothing of it, nor any more."""
        links, self._links = self._links, []
        self._unheard.update(near for near, _ in links)
        for _, far in links:
            with contextlib.suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Close the links through this proxy, but not the requests."""
        links, self._links = self._links, []
        for pair in links:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._server.close()

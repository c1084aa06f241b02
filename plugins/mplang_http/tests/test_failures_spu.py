"""Fault injection at random moments of an SPU job: one error at once, and the next run works.

Most faults are injected once here; all ``MPLANG_FAILURES=50`` times by ``make test-failures``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from mplang_http import LocalCluster
from mplang_http.client import RefusedError, WorkerClient
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.errors import PartyError

ROUNDS = int(os.environ.get("MPLANG_FAILURES", "1"))
KIT = ("mplang_testing.dialect",)
FOREVER = 2**62
HERE = r"test_failures_spu\.py:\d+"
POOLS = 20  # threads that the pools of an engine may start
SLACK = 3.0  # seconds that a busy machine may add to the detection of a fault

pytestmark = [pytest.mark.timeout(60 + 30 * ROUNDS)]


# -- job: each iteration has a step on shares with many messages, and one on plain values


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


# -- testbed


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
        return [WorkerClient(n.name, n.address, None, 10.0) for n in self.cluster.spec.nodes]

    def run_with_fault(self, fault, program=endless):
        """Inject a fault while a program runs, and return the error."""
        with self.fault_during_run(fault), pytest.raises(PartyError) as caught:
            mp.evaluate(self.host, program, X, Y)
        return caught.value

    @contextlib.contextmanager
    def fault_during_run(self, fault, parties=3):
        """Inject a fault after all parties have begun, and measure the time to the error."""
        begin = []

        def later():
            for client in self.clients()[:parties]:
                with contextlib.closing(client):
                    while not any(job["at"]["op"] for job in running(client, self.host.session)):
                        time.sleep(0.005)
            time.sleep(self.rng.uniform(0, 0.5))
            begin.append(time.monotonic())
            fault()

        thread = threading.Thread(target=later, daemon=True)
        thread.start()
        yield
        self.delays.append(time.monotonic() - begin[0])
        thread.join()

    def wait_all_ended(self, session=None, within=15.0):
        """Wait until no job of the session is active at any party."""
        begin = time.monotonic()
        for client in self.clients():
            with contextlib.closing(client):
                while running(client, session or self.host.session):
                    assert time.monotonic() < begin + within, f"{client.name} goes on"
                    time.sleep(0.02)
        self.end_times.append(time.monotonic() - begin)

    def wait_ready(self, rank):
        """Wait until the engine of a worker is ready."""
        node = self.cluster.spec.nodes[rank]
        deadline = time.monotonic() + 60
        with contextlib.closing(WorkerClient(node.name, node.address, None, 10.0)) as client:
            while client.request("GET", "health")["state"] != "ready":
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def engine(self, rank):
        return engine_of(self.cluster.workers[rank].pid)

    def threads(self):
        """Return the number of threads of each engine."""
        engines = [self.engine(rank) for rank in range(len(self.cluster.workers))]
        return {pid: count(pid, "Threads") for pid in engines}


def running(client, session):
    try:
        jobs = client.request("GET", "v1", "sessions", session, "jobs")["jobs"]
    except RefusedError as refused:
        if refused.code not in ("unknown-session", "starting", "engine-ended"):
            raise
        return []
    return [job for job in jobs if job["state"] in ("queued", "running")]


def engine_of(front):
    with open(f"/proc/{front}/task/{front}/children") as children:
        (pid,) = map(int, children.read().split())
    return pid


def count(pid, what):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what + ":"))


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3, imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def testbed(workers, request, capsys):
    """Return a testbed with a patience of one second; print its measurements."""
    options = getattr(request, "param", {})
    rng = random.Random(request.node.name)
    with mp.connect("http", workers.spec, **{"patience": 1.0, **options}) as host:
        works(host)
        testbed = FaultTestbed(workers, host, rng)
        before = testbed.threads()
        yield testbed
        for pid, threads in testbed.threads().items():
            assert threads <= before.get(pid, threads) + POOLS, f"threads were left behind in {pid}"
    if ROUNDS > 1 and testbed.delays:
        with capsys.disabled():
            print(
                f"\n  {len(testbed.delays)} times; the error came after {spread(testbed.delays)} s",
                end="",
            )
            if testbed.end_times:
                print(f", the last party ended {spread(testbed.end_times)} s later")


def spread(values):
    return f"{statistics.median(values):.2f} (at most {max(values):.2f})"


def assert_error(error, rank, *texts, op=r"\w+\.\w+"):
    """Assert that an error names the party, the op, the line and the cause."""
    assert error.rank == rank, error
    for text in texts:
        assert re.search(text, str(error)), f"{text!r} is not in: {error}"
    assert re.search(rf"in {op} at {HERE}", str(error)), error


def rounds():
    """Return the number of each round, and the rank of its faulty party."""
    return ((i, i % 3) for i in range(ROUNDS))


# -- faults


def test_a_kernel_that_raises(testbed):
    for _, rank in rounds():
        last = np.int64(testbed.rng.randrange(20))

        def fault_op(i, last=last, rank=rank):
            return mp.uniform_cond(
                mp.invoke(dialect.less, i, mp.constant(last)),
                lambda i: i,
                lambda i: mp.invoke(dialect.fail_at, i, party=rank),
                i,
            )

        begin = time.monotonic()
        with pytest.raises(PartyError) as caught:
            mp.evaluate(testbed.host, job(FOREVER, fault_op), X, Y)
        testbed.delays.append(time.monotonic() - begin)
        assert_error(caught.value, rank, "RuntimeError", op="kit.fail_at")
        assert dialect.SECRET not in str(caught.value)
        testbed.wait_all_ended()
        works(testbed.host)


def test_an_engine_that_is_killed(testbed):
    for _, rank in rounds():
        error = testbed.run_with_fault(
            lambda rank=rank: os.kill(testbed.engine(rank), signal.SIGKILL)
        )
        assert_error(error, rank, f"the engine of worker node{rank} ended by SIGKILL")
        assert testbed.delays[-1] < 1 + SLACK
        testbed.wait_all_ended()
        testbed.wait_ready(rank)
        works(testbed.host)


def test_a_worker_that_is_killed_and_comes_back(testbed):
    for _, rank in rounds():
        error = testbed.run_with_fault(
            lambda rank=rank: testbed.cluster.signal(rank, signal.SIGKILL)
        )
        assert_error(error, rank, f"worker node{rank} at http.* does not answer")
        assert testbed.delays[-1] < 1 + SLACK
        with pytest.raises(PartyError, match=f"worker node{rank} .* does not answer"):
            works(testbed.host)
        testbed.cluster.restart(rank)
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow
def test_a_worker_that_is_stopped_and_goes_on(testbed):
    for _, rank in rounds():
        try:
            error = testbed.run_with_fault(
                lambda rank=rank: testbed.cluster.signal(rank, signal.SIGSTOP)
            )
        finally:
            testbed.cluster.signal(rank, signal.SIGCONT)
        assert_error(error, rank, f"worker node{rank} at http.* gave no sign of life")
        assert testbed.delays[-1] < 3 + SLACK  # one second of polling, one of patience
        testbed.wait_all_ended()
        works(testbed.host)


def test_an_engine_that_is_stopped_and_goes_on(testbed):
    for _, rank in rounds():
        engine = testbed.engine(rank)
        try:
            error = testbed.run_with_fault(lambda engine=engine: os.kill(engine, signal.SIGSTOP))
        finally:
            os.kill(engine, signal.SIGCONT)
        assert_error(error, rank, f"worker node{rank} .*gave no sign of life")
        assert testbed.delays[-1] < 3 + SLACK
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow
@pytest.mark.parametrize("testbed", [{"timeout": 1.0}], indirect=True)
def test_a_party_that_is_too_slow(testbed):
    for _, rank in rounds():
        last = np.int64(testbed.rng.randrange(20))

        def fault_op(i, last=last, rank=rank):
            return mp.uniform_cond(
                mp.invoke(dialect.less, i, mp.constant(last)),
                lambda i: i,
                lambda i: mp.invoke(dialect.late, i, party=rank, seconds=3.0),
                i,
            )

        with pytest.raises(PartyError) as caught:
            mp.evaluate(testbed.host, job(FOREVER, fault_op), X, Y)
        assert caught.value.rank != rank
        assert_error(
            caught.value, caught.value.rank, "waited 1 s for a message from party",
            rf"party {rank} was in kit.late at {HERE}",
        )  # fmt: skip
        testbed.wait_all_ended()
        works(testbed.host)


def test_a_host_that_is_interrupted(testbed):
    main = threading.main_thread().ident
    for _ in rounds():
        interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
        with testbed.fault_during_run(interrupt), pytest.raises(KeyboardInterrupt):
            mp.evaluate(testbed.host, endless, X, Y)
        assert testbed.delays[-1] < 1 + SLACK
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow
def test_a_host_that_is_interrupted_amid_cheetah(workers):
    """Destructors of libspu's Cheetah objects send data, which must not end the engine."""
    main = threading.main_thread().ident
    interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
    cluster = mp.ClusterSpec(workers.spec.nodes[:2])
    with mp.connect("http", cluster) as host:
        works(host)
        testbed = FaultTestbed(workers, host, random.Random("cheetah"))
        engines = list(testbed.threads())
        for _ in range(max(3, ROUNDS)):
            with testbed.fault_during_run(interrupt, 2), pytest.raises(KeyboardInterrupt):
                mp.evaluate(host, endless, X, Y)
            testbed.wait_all_ended()
            works(host)
        assert list(testbed.threads()) == engines


LEASE = 2.0
COORDINATOR = """
import sys
import mplang_core as mp
sys.path.insert(0, sys.argv[1])
import test_failures_spu as test
with mp.connect("http", mp.ClusterSpec.from_yaml(sys.argv[2])) as host:
    kept = mp.evaluate(host, test.short, test.X, test.Y)
    print(host.session, flush=True)
    mp.evaluate(host, test.endless, test.X, test.Y)
"""


@pytest.fixture(scope="module")
def short_lease():
    """Return workers with a short lease."""
    with LocalCluster(3, imports=KIT, timeouts={"lease": LEASE}) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_host_that_is_killed(short_lease, tmp_path):
    spec = tmp_path / "cluster.yaml"
    nodes = [{"name": node.name, "address": node.address} for node in short_lease.spec.nodes]
    spec.write_text(yaml.safe_dump({"nodes": nodes}))
    testbed = FaultTestbed(short_lease, None, random.Random("killed"))
    command = [sys.executable, "-c", COORDINATOR, os.path.dirname(__file__), str(spec)]
    for _ in rounds():
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
            session = coordinator.stdout.readline().strip()
            assert session
            time.sleep(testbed.rng.uniform(0, 0.5))
            coordinator.kill()
        time.sleep(LEASE * 5 / 4 + 0.5)
        for client in testbed.clients():
            with contextlib.closing(client):
                tries = 0
                while is_open(client, session):  # each request renews the lease
                    tries += 1
                    assert tries < 5
                    time.sleep(2 * LEASE)
    with mp.connect("http", short_lease.spec) as host:
        works(host)


def is_open(client, session):
    try:
        client.request("GET", "v1", "sessions", session, "jobs")
    except RefusedError as refused:
        if refused.code != "unknown-session":
            raise
        return False
    return True


@pytest.mark.slow
def test_a_worker_that_is_not_there(testbed):
    for _, rank in rounds():
        testbed.cluster.signal(rank, signal.SIGKILL)
        begin = time.monotonic()
        try:
            with pytest.raises(
                PartyError, match=rf"party {rank} failed: worker node{rank} .* does not answer"
            ):
                mp.connect("http", testbed.cluster.spec)
            testbed.delays.append(time.monotonic() - begin)
        finally:
            testbed.cluster.restart(rank)
        assert testbed.delays[-1] < 1 + SLACK
        with mp.connect("http", testbed.cluster.spec) as host:
            works(host)


# -- network faults


class TcpProxy:
    """TCP proxy in front of a worker, which can cut links."""

    def __init__(self, address):
        self._to = address.removeprefix("http://").split(":")
        self._server = socket.create_server(("127.0.0.1", 0))
        self._links = []
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
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Close the links through this proxy, but not the requests."""
        links, self._links = self._links, []
        for pair in links:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._server.close()


@pytest.fixture
def proxied(capsys):
    """Return a testbed whose workers connect through proxies, and the proxies."""
    with LocalCluster(3, imports=KIT) as cluster, contextlib.ExitStack() as stack:
        proxies = [
            stack.enter_context(contextlib.closing(TcpProxy(n.address))) for n in cluster.spec.nodes
        ]
        addresses = [proxy.address for proxy in proxies]
        with mp.connect("http", cluster.spec, addresses=addresses, patience=1.0) as host:
            works(host)
            testbed = FaultTestbed(cluster, host, random.Random("wired"))
            yield testbed, proxies
    if ROUNDS > 1:
        with capsys.disabled():
            print(
                f"\n  {len(testbed.delays)} times; the error came after {spread(testbed.delays)} s"
            )


def test_a_link_that_is_lost(proxied):
    testbed, proxies = proxied
    for number in range(ROUNDS):
        rank = 1 + number % 2  # the wire to node1 has one link, that to node2 has two
        error = testbed.run_with_fault(proxies[rank].cut)
        assert_error(error, error.rank, r"the link to party \d \(node\d\)|its link to party \d")
        assert testbed.delays[-1] < 1 + SLACK
        testbed.wait_all_ended()
        works(testbed.host)

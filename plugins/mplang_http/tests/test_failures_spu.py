"""Whatever breaks at a random moment of a running SPU job: one error at once, and life goes on.

Most kinds of failure happen once here; all ``MPLANG_FAILURES=50`` times by ``make test-failures``.
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

import mplang_core as mp
from mplang_core.errors import PartyError
from mplang_core.testing import dialect

ROUNDS = int(os.environ.get("MPLANG_FAILURES", "1"))
KIT = ("mplang_core.testing.dialect",)
FOREVER = 2**62
HERE = r"test_failures_spu\.py:\d+"
POOLS = 20  # threads that an engine's pools may come to have
SLACK = 3.0  # seconds that a busy machine may add to a detection, one failure out of many

pytestmark = [pytest.mark.timeout(60 + 30 * ROUNDS)]


# -- the job: every turn has a step on shares, of many messages, and one in the clear


def nearer(a, y):
    """Some rounds of comparing and multiplying."""
    return jax.lax.fori_loop(0, 5, lambda _, v: v / 2 + jnp.where(y > v, y, v) / 2, a)


def job(turns, trouble=lambda i: i):
    """A program of so many turns, which asks for trouble in each."""

    def program(x, y):
        x, y = mp.put("P0", x), mp.put("P1", y)

        def below(state):
            return mp.invoke(dialect.less, state[0], mp.constant(np.int64(turns)))

        def turn(state):
            i, a = state
            i = trouble(i)
            a = mp.device("SP0")(nearer)(a, y)
            return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), a

        _, a = mp.while_loop(below, turn, (mp.constant(np.int64(0)), mp.seal(x)))
        return mp.reveal(a, to="P0")

    return program


X, Y = np.float32([1, 2]), np.float32([3, 1])
short, endless = job(2), job(FOREVER)


def works(host):
    found = mp.fetch(host, mp.evaluate(host, short, X, Y))
    np.testing.assert_allclose(found, [3, 2], atol=0.02)


# -- the stage


@dataclass
class Stage:
    """Workers, a host, and figures of what happened."""

    cluster: LocalCluster
    host: mp.simp.SimpHost
    chance: random.Random
    took: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    def clients(self):
        return [WorkerClient(n.name, n.address, None, 10.0) for n in self.cluster.spec.nodes]

    def fails(self, act, program=endless):
        """Have something happen while the job runs; return the one error."""
        with self.amid(act), pytest.raises(PartyError) as caught:
            mp.evaluate(self.host, program, X, Y)
        return caught.value

    @contextlib.contextmanager
    def amid(self, act, parties=3):
        """Act a moment after all parties have begun; note how long it is to the error."""
        begin = []

        def later():
            for client in self.clients()[:parties]:
                with contextlib.closing(client):
                    while not any(job["at"]["op"] for job in running(client, self.host.session)):
                        time.sleep(0.005)
            time.sleep(self.chance.uniform(0, 0.5))
            begin.append(time.monotonic())
            act()

        thread = threading.Thread(target=later, daemon=True)
        thread.start()
        yield
        self.took.append(time.monotonic() - begin[0])
        thread.join()

    def all_ended(self, session=None, within=15.0):
        """Wait until no job of the session goes on anywhere."""
        begin = time.monotonic()
        for client in self.clients():
            with contextlib.closing(client):
                while running(client, session or self.host.session):
                    assert time.monotonic() < begin + within, f"{client.name} goes on"
                    time.sleep(0.02)
        self.ended.append(time.monotonic() - begin)

    def up_again(self, rank):
        """Wait until a worker has an engine."""
        node = self.cluster.spec.nodes[rank]
        deadline = time.monotonic() + 60
        with contextlib.closing(WorkerClient(node.name, node.address, None, 10.0)) as client:
            while client.request("GET", "health")["state"] != "ready":
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def engine(self, rank):
        return engine_of(self.cluster.workers[rank].pid)

    def threads(self):
        """Tell of each engine how many it has."""
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
def stage(workers, request, capsys):
    """A host with little patience; its figures are shown in the end."""
    options = getattr(request, "param", {})
    chance = random.Random(request.node.name)
    with mp.connect("http", workers.spec, **{"patience": 1.0, **options}) as host:
        works(host)
        stage = Stage(workers, host, chance)
        before = stage.threads()
        yield stage
        for pid, threads in stage.threads().items():
            assert threads <= before.get(pid, threads) + POOLS, f"threads were left behind in {pid}"
    if ROUNDS > 1 and stage.took:
        with capsys.disabled():
            print(
                f"\n  {len(stage.took)} times; the error came after {spread(stage.took)} s", end=""
            )
            if stage.ended:
                print(f", the last party ended {spread(stage.ended)} s later")


def spread(figures):
    return f"{statistics.median(figures):.2f} (at most {max(figures):.2f})"


def said(error, rank, *texts, op=r"\w+\.\w+"):
    """The error names the party, the op, the line and the cause."""
    assert error.rank == rank, error
    for text in texts:
        assert re.search(text, str(error)), f"{text!r} is not in: {error}"
    assert re.search(rf"in {op} at {HERE}", str(error)), error


def each_round():
    """Give the number of each round, and the party that is in trouble then."""
    return ((i, i % 3) for i in range(ROUNDS))


# -- what breaks


def test_a_kernel_that_raises(stage):
    for _, rank in each_round():
        last = np.int64(stage.chance.randrange(20))

        def trouble(i, last=last, rank=rank):
            return mp.uniform_cond(
                mp.invoke(dialect.less, i, mp.constant(last)),
                lambda i: i,
                lambda i: mp.invoke(dialect.fail_at, i, party=rank),
                i,
            )

        begin = time.monotonic()
        with pytest.raises(PartyError) as caught:
            mp.evaluate(stage.host, job(FOREVER, trouble), X, Y)
        stage.took.append(time.monotonic() - begin)
        said(caught.value, rank, "RuntimeError", op="kit.fail_at")
        assert dialect.SECRET not in str(caught.value)
        stage.all_ended()
        works(stage.host)


def test_an_engine_that_is_killed(stage):
    for _, rank in each_round():
        error = stage.fails(lambda rank=rank: os.kill(stage.engine(rank), signal.SIGKILL))
        said(error, rank, f"the engine of worker node{rank} ended by SIGKILL")
        assert stage.took[-1] < 1 + SLACK
        stage.all_ended()
        stage.up_again(rank)
        works(stage.host)


def test_a_worker_that_is_killed_and_comes_back(stage):
    for _, rank in each_round():
        error = stage.fails(lambda rank=rank: stage.cluster.signal(rank, signal.SIGKILL))
        said(error, rank, f"worker node{rank} at http.* does not answer")
        assert stage.took[-1] < 1 + SLACK
        with pytest.raises(PartyError, match=f"worker node{rank} .* does not answer"):
            works(stage.host)
        stage.cluster.restart(rank)
        stage.all_ended()
        works(stage.host)


@pytest.mark.slow
def test_a_worker_that_is_stopped_and_goes_on(stage):
    for _, rank in each_round():
        try:
            error = stage.fails(lambda rank=rank: stage.cluster.signal(rank, signal.SIGSTOP))
        finally:
            stage.cluster.signal(rank, signal.SIGCONT)
        said(error, rank, f"worker node{rank} at http.* gave no sign of life")
        assert stage.took[-1] < 3 + SLACK  # a second of waiting, one of patience, to detect it
        stage.all_ended()
        works(stage.host)


def test_an_engine_that_is_stopped_and_goes_on(stage):
    for _, rank in each_round():
        engine = stage.engine(rank)
        try:
            error = stage.fails(lambda engine=engine: os.kill(engine, signal.SIGSTOP))
        finally:
            os.kill(engine, signal.SIGCONT)
        said(error, rank, f"worker node{rank} .*gave no sign of life")
        assert stage.took[-1] < 3 + SLACK
        stage.all_ended()
        works(stage.host)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [{"timeout": 1.0}], indirect=True)
def test_a_party_that_is_too_slow(stage):
    for _, rank in each_round():
        last = np.int64(stage.chance.randrange(20))

        def trouble(i, last=last, rank=rank):
            return mp.uniform_cond(
                mp.invoke(dialect.less, i, mp.constant(last)),
                lambda i: i,
                lambda i: mp.invoke(dialect.late, i, party=rank, seconds=3.0),
                i,
            )

        with pytest.raises(PartyError) as caught:
            mp.evaluate(stage.host, job(FOREVER, trouble), X, Y)
        assert caught.value.rank != rank
        said(
            caught.value, caught.value.rank, "waited 1 s for a message from party",
            rf"party {rank} was in kit.late at {HERE}",
        )  # fmt: skip
        stage.all_ended()
        works(stage.host)


def test_a_host_that_is_interrupted(stage):
    main = threading.main_thread().ident
    for _ in each_round():
        interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
        with stage.amid(interrupt), pytest.raises(KeyboardInterrupt):
            mp.evaluate(stage.host, endless, X, Y)
        assert stage.took[-1] < 1 + SLACK
        stage.all_ended()
        works(stage.host)


@pytest.mark.slow
def test_a_host_that_is_interrupted_amid_cheetah(workers):
    """Its objects send what is left when they go, which must not take the engine along."""
    main = threading.main_thread().ident
    interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
    cluster = mp.ClusterSpec(workers.spec.nodes[:2])
    with mp.connect("http", cluster) as host:
        works(host)
        stage = Stage(workers, host, random.Random("cheetah"))
        engines = list(stage.threads())
        for _ in range(max(3, ROUNDS)):
            with stage.amid(interrupt, 2), pytest.raises(KeyboardInterrupt):
                mp.evaluate(host, endless, X, Y)
            stage.all_ended()
            works(host)
        assert list(stage.threads()) == engines


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
def impatient():
    """Workers that hear of a lost coordinator soon."""
    with LocalCluster(3, imports=KIT, timeouts={"lease": LEASE}) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_host_that_is_killed(impatient, tmp_path):
    spec = tmp_path / "cluster.yaml"
    nodes = [{"name": node.name, "address": node.address} for node in impatient.spec.nodes]
    spec.write_text(yaml.safe_dump({"nodes": nodes}))
    stage = Stage(impatient, None, random.Random("killed"))
    command = [sys.executable, "-c", COORDINATOR, os.path.dirname(__file__), str(spec)]
    for _ in each_round():
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
            session = coordinator.stdout.readline().strip()
            assert session
            time.sleep(stage.chance.uniform(0, 0.5))
            coordinator.kill()
        time.sleep(LEASE * 5 / 4 + 0.5)
        for client in stage.clients():
            with contextlib.closing(client):
                tries = 0
                while is_open(client, session):  # to ask is a sign of life, too
                    tries += 1
                    assert tries < 5
                    time.sleep(2 * LEASE)
    with mp.connect("http", impatient.spec) as host:
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
def test_a_worker_that_is_not_there(stage):
    for _, rank in each_round():
        stage.cluster.signal(rank, signal.SIGKILL)
        begin = time.monotonic()
        try:
            with pytest.raises(
                PartyError, match=rf"party {rank} failed: worker node{rank} .* does not answer"
            ):
                mp.connect("http", stage.cluster.spec)
            stage.took.append(time.monotonic() - begin)
        finally:
            stage.cluster.restart(rank)
        assert stage.took[-1] < 1 + SLACK
        with mp.connect("http", stage.cluster.spec) as host:
            works(host)


# -- the network


class Wire:
    """A port that passes bytes on to a worker's port, until it is cut."""

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
        """End the links on this wire, but no requests."""
        links, self._links = self._links, []
        for pair in links:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._server.close()


@pytest.fixture
def wired(capsys):
    """Workers that reach one another over wires."""
    with LocalCluster(3, imports=KIT) as cluster, contextlib.ExitStack() as stack:
        wires = [
            stack.enter_context(contextlib.closing(Wire(n.address))) for n in cluster.spec.nodes
        ]
        addresses = [wire.address for wire in wires]
        with mp.connect("http", cluster.spec, addresses=addresses, patience=1.0) as host:
            works(host)
            stage = Stage(cluster, host, random.Random("wired"))
            yield stage, wires
    if ROUNDS > 1:
        with capsys.disabled():
            print(f"\n  {len(stage.took)} times; the error came after {spread(stage.took)} s")


def test_a_link_that_is_lost(wired):
    stage, wires = wired
    for number in range(ROUNDS):
        rank = 1 + number % 2  # the wire to node1 has one link, that to node2 has two
        error = stage.fails(wires[rank].cut)
        said(error, error.rank, r"the link to party \d \(node\d\)|its link to party \d")
        assert stage.took[-1] < 1 + SLACK
        stage.all_ended()
        works(stage.host)

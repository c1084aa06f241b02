"""Fault injection at random moments of an SPU job: one error at once, and the next run works.

Most faults are injected once here; all ``MPLANG_FAILURES=50`` times by ``make test-failures``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import fault_testbed
import numpy as np
import pytest
import yaml
from fault_testbed import (
    FOREVER,
    KIT,
    POOLS,
    ROUNDS,
    SLACK,
    FaultTestbed,
    TcpProxy,
    X,
    Y,
    assert_error,
    endless,
    job,
    rounds,
    spread,
    works,
)
from mplang_http import LocalCluster
from mplang_http.client import RefusedError
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.errors import PartyError

HERE = r"test_failures_spu\.py:\d+"

pytestmark = [pytest.mark.timeout(60 + 30 * ROUNDS)]


# -- testbed


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
        assert_error(caught.value, rank, "the reason is in", op="kit.fail_at", at=HERE)
        assert dialect.SECRET not in str(caught.value)
        assert "RuntimeError" not in str(caught.value)
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


def test_an_engine_that_is_stopped(testbed):
    for _, rank in rounds():
        engine = testbed.engine(rank)
        try:
            error = testbed.run_with_fault(lambda engine=engine: os.kill(engine, signal.SIGSTOP))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(engine, signal.SIGCONT)
        assert_error(error, rank, "its engine was ended: its process was stopped by a signal")
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
            rf"party {rank} was in kit.late at {HERE}", at=rf"(?:{HERE}|{fault_testbed.HERE})",
        )  # fmt: skip
        testbed.wait_all_ended()
        works(testbed.host)


def test_a_host_that_is_interrupted(testbed, interruptible):
    main = threading.main_thread().ident
    for _ in rounds():
        interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
        with testbed.fault_during_run(interrupt), pytest.raises(KeyboardInterrupt):
            mp.evaluate(testbed.host, endless, X, Y)
        assert testbed.delays[-1] < 1 + SLACK
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow
def test_a_host_that_is_interrupted_amid_cheetah(workers, interruptible):
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
import fault_testbed as test
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

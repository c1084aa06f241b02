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

import numpy as np
import pytest
import yaml
from fault_testbed import (
    FOREVER,
    KIT,
    POOLS,
    ROUNDS,
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
from log_reading import LogReader
from mplang_http import LocalCluster
from mplang_http.coordinator import failure_report
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, NEVER, in_time, pause, wait_until

import mplang_core as mp
from mplang_core.errors import PartyError

HERE = r"test_failures_spu\.py:\d+"

PATIENCE = 5.0  # seconds, of tests in which it ends; no test waits longer for a message
LATE = 8.0  # seconds

pytestmark = [pytest.mark.timeout(300 + 30 * ROUNDS)]


# -- testbed


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3, imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def testbed(workers, request, capsys, monkeypatch):
    """Return a testbed with a patience that does not end; print its measurements."""
    monkeypatch.setattr(failure_report, "CAUSE_TIMEOUT", DEADLINE)  # a slow machine tells it late
    options = getattr(request, "param", {})
    rng = random.Random(request.node.name)
    with mp.connect("http", workers.spec, **{"patience": NEVER, **options}) as host:
        works(host)
        testbed = FaultTestbed(workers, host, rng)
        before = testbed.threads()
        yield testbed
        wait_until(
            lambda: all(
                threads <= before.get(pid, threads) + POOLS
                for pid, threads in testbed.threads().items()
            ),
            "no threads are left behind",
        )
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
        testbed.wait_all_ended()
        testbed.wait_ready(rank)
        works(testbed.host)


def test_a_worker_that_is_killed_and_comes_back(testbed):
    for _, rank in rounds():
        error = testbed.run_with_fault(
            lambda rank=rank: testbed.cluster.signal(rank, signal.SIGKILL)
        )
        assert_error(error, rank, f"worker node{rank} at http.* does not answer")
        with pytest.raises(PartyError, match=f"worker node{rank} .* does not answer"):
            works(testbed.host)
        testbed.cluster.restart(rank)
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow("waits for a patience of 5 s to run out")
@pytest.mark.parametrize("testbed", [{"patience": PATIENCE}], indirect=True)
def test_a_worker_that_is_stopped_and_goes_on(testbed):
    for _, rank in rounds():
        try:
            error = testbed.run_with_fault(
                lambda rank=rank: testbed.cluster.signal(rank, signal.SIGSTOP)
            )
        finally:
            testbed.cluster.signal(rank, signal.SIGCONT)
        assert_error(error, rank, f"worker node{rank} at http.* gave no sign of life")
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
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow("a party works for 16 s, and the time-out of the others is 8 s")
@pytest.mark.parametrize("testbed", [{"timeout": LATE}], indirect=True)
def test_a_party_that_is_slow_is_waited_for(testbed):
    for _, rank in rounds():

        def fault_op(i, rank=rank):
            return mp.invoke(dialect.late, i, party=rank, seconds=2 * LATE)

        mp.fetch(testbed.host, mp.evaluate(testbed.host, job(1, fault_op), X, Y))
        works(testbed.host)


def test_a_host_that_is_interrupted(testbed):
    main = threading.main_thread().ident
    for _ in rounds():
        interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
        with testbed.fault_during_run(interrupt), pytest.raises(KeyboardInterrupt):
            mp.evaluate(testbed.host, endless, X, Y)
        testbed.wait_all_ended()
        works(testbed.host)


@pytest.mark.slow("CHEETAH sets up oblivious transfers, anew after each of three interrupts")
def test_a_host_that_is_interrupted_amid_cheetah(workers):
    """Destructors of libspu's Cheetah objects send data, which must not end the engine."""
    main = threading.main_thread().ident
    interrupt = functools.partial(signal.pthread_kill, main, signal.SIGINT)
    cluster = mp.ClusterSpec(workers.spec.nodes[:2])
    with mp.connect("http", cluster) as host:
        works(host)
        testbed = FaultTestbed(workers, host, random.Random("cheetah"))
        engines = [testbed.engine(rank) for rank in range(2)]
        for _ in range(max(3, ROUNDS)):
            with testbed.fault_during_run(interrupt, 2), pytest.raises(KeyboardInterrupt):
                mp.evaluate(host, endless, X, Y)
            testbed.wait_all_ended()
            works(host)
        assert [testbed.engine(rank) for rank in range(2)] == engines


LEASE = 10.0  # seconds; the coordinator renews it every second, while it lives
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
def short_lease(tmp_path_factory):
    """Return workers with a short lease, and the files of their logs."""
    folder, timeouts = tmp_path_factory.mktemp("logs"), {"lease": LEASE}
    with LocalCluster(
        3, imports=KIT, timeouts=timeouts, log=str(folder), log_level="info"
    ) as cluster:
        yield cluster, [folder / f"{node.name}.log" for node in cluster.spec.nodes]


@pytest.mark.slow("waits for a lease of 10 s to run out")
def test_a_host_that_is_killed(short_lease, tmp_path):
    cluster, logs = short_lease
    spec = tmp_path / "cluster.yaml"
    nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
    spec.write_text(yaml.safe_dump({"nodes": nodes}))
    rng = random.Random("killed")
    command = [sys.executable, "-c", COORDINATOR, os.path.dirname(__file__), str(spec)]
    for _ in rounds():
        told = [LogReader(log) for log in logs]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
            assert coordinator.stdout.readline().strip()
            pause(rng.uniform(0, 0.5), "it is killed at a random moment")
            coordinator.kill()
        for log in told:  # not by a request, which would renew the lease
            log.wait_for(f"closed: the coordinator was silent for {LEASE:g} s")
    with mp.connect("http", cluster.spec) as host:
        works(host)


@pytest.mark.slow("a worker of three is killed and starts again, with sessions before and after")
def test_a_worker_that_is_not_there(testbed):
    for _, rank in rounds():
        testbed.cluster.signal(rank, signal.SIGKILL)
        begin = time.monotonic()
        try:
            told = rf"party {rank} failed: worker node{rank} .* does not answer"
            with in_time(), pytest.raises(PartyError, match=told):
                mp.connect("http", testbed.cluster.spec, patience=NEVER)
            testbed.delays.append(time.monotonic() - begin)
        finally:
            testbed.cluster.restart(rank)
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
        with mp.connect("http", cluster.spec, addresses=addresses, patience=NEVER) as host:
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
        assert_error(error, error.rank, lost_link(r"\d"))
        testbed.wait_all_ended()
        works(testbed.host)


def lost_link(rank):
    """Return the pattern of what a party says that has lost a link of its engine, or another."""
    far = rf"(?:the MPC process of )?party {rank}"
    return rf"the link to {far} \(node{rank}\)|its link to {far}"


@pytest.mark.long("waits 5 s for an answer on a link whose other end is gone")
def test_a_link_that_is_lost_at_one_end(proxied):
    testbed, proxies = proxied
    error = testbed.run_with_fault(proxies[1].cut_unheard)
    assert_error(
        error,
        error.rank,
        r"the link to party 0 \(node0\)|its link to (the MPC process of )?party 0",
    )
    testbed.wait_all_ended()
    works(testbed.host)

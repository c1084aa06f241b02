"""MPC processes on live workers: replaced when they end, told by name."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from fault_testbed import KIT, FaultTestbed, X, assert_error, works
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_testing.waiting import DEADLINE, NEVER, pause, wait_until
from mplang_worker.front.mpc import _is_there
from mplang_worker.front.session import SessionMpc
from processes import engine_of, mpc_process_of

import mplang_core as mp


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3, imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec, patience=NEVER) as host:
        works(host)
        yield host


def failed_runs(cluster):
    """Return how many failed runs each worker has counted."""
    return [int(row["failures"].split()[0]) for row in cluster_status(cluster.spec)]


def test_an_mpc_process_that_is_killed_fails_the_run_and_is_replaced(workers, host):
    """Values that were kept are there afterwards, in the engine that goes on."""
    sealed = mp.evaluate(host, lambda: mp.seal(mp.put("P0", X)))
    testbed = FaultTestbed(workers, host, random.Random(0))
    before = failed_runs(workers)
    for rank in range(3):
        engine, killed = testbed.engine(rank), mpc_process_of(workers.workers[rank].pid)
        error = testbed.run_with_fault(lambda pid=killed: os.kill(pid, signal.SIGKILL))
        told = rf"the MPC process of (?:worker node{rank} ended|party {rank} \(node{rank}\))"
        assert_error(error, error.rank, told)
        testbed.wait_all_ended()
        before[rank] += 1  # it may depend on private data here; at the others a link was lost
        wait_until(lambda expected=list(before): failed_runs(workers) == expected)
        works(host)
        assert mpc_process_of(workers.workers[rank].pid) != killed
        assert engine_of(workers.workers[rank].pid) == engine
    found = mp.evaluate(host, lambda x: mp.reveal(x, to="P2"), sealed)
    np.testing.assert_allclose(mp.fetch(host, found), X, atol=1e-4)


def test_one_that_ends_between_two_runs_is_replaced_before_the_next(workers, host):
    sealed = mp.evaluate(host, lambda: mp.seal(mp.put("P0", X)))
    os.kill(mpc_process_of(workers.workers[1].pid), signal.SIGKILL)
    wait_until(lambda: not host._workers[1].linked, "the next renewal of the lease tells the host")
    found = mp.evaluate(
        host, lambda x: mp.reveal(mp.device("SP0")(jnp.negative)(x), to="P2"), sealed
    )
    np.testing.assert_allclose(mp.fetch(host, found), -X, atol=1e-4)


def test_one_that_ends_while_it_is_linked_is_replaced_at_once(workers, host):
    """Wrong messages may harm it in a run that fails, and it ends only after that."""
    testbed = FaultTestbed(workers, host, random.Random(0))
    pids = [mpc_process_of(worker.pid) for worker in workers.workers]
    testbed.run_with_fault(lambda: os.kill(pids[1], signal.SIGKILL))
    testbed.wait_all_ended()
    with suppress(ProcessLookupError):  # it may have ended by itself
        os.kill(pids[0], signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(works, host)
        pause(0.2, "the next run links it; who is stopped for longer ends its session")
        with suppress(ProcessLookupError):
            os.kill(pids[0], signal.SIGKILL)
        running.result(DEADLINE)


def test_the_status_tells_which_native_services_a_session_has(workers, host):
    assert [row["native"] for row in cluster_status(workers.spec)] == ["spu"] * 3


def private_memory(pid):
    """Return the bytes that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


def test_a_session_takes_little_memory_before_its_first_program():
    """Both processes share what the warm process has loaded, OpenSSL's tables included."""
    with LocalCluster(2, tls=True) as pair, mp.connect("http", pair.spec, tls=pair.tls):
        for worker in pair.workers:
            both = engine_of(worker.pid), mpc_process_of(worker.pid)
            assert sum(map(private_memory, both)) < 20 << 20


def test_a_process_that_has_ended_is_not_asked_whether_it_is_there():
    """Its end was told before, and the notice of it may still wait for its turn."""
    mpc = SessionMpc("match")
    mpc.process = SimpleNamespace(lost=True, tell=lambda message: None)
    assert not asyncio.run(asyncio.wait_for(_is_there(mpc), DEADLINE))

"""Soak tests: many jobs, without mixed-up values or leaked resources."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_testing import dialect
from processes import engine_of, engines_of, fork_server_of

import mplang_core as mp

KIT = ("mplang_testing.dialect",)
MB = 1 << 20


def resident_mb(pid):
    """Return the resident memory of a process in megabytes."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def plain(x, y):
    """Combine data of two parties at the third."""
    x, y = mp.put("P2", mp.put("P0", x)), mp.put("P2", mp.put("P1", y))
    return mp.device("P2")(lambda x, y: x * 1000 + y)(x, y)


def shared(x, y):
    z = mp.device("SP0")(lambda x, y: x * 2 + y)(mp.put("P0", x), mp.put("P1", y))
    return mp.reveal(z, to="P2")


def check(host, i, secret):
    if secret:
        found = mp.fetch(host, mp.evaluate(host, shared, np.float32([i]), np.float32([1])))
        np.testing.assert_allclose(np.ravel(found), [2 * i + 1], atol=0.01)
    else:
        found = mp.fetch(host, mp.evaluate(host, plain, np.int32([i]), np.int32([i % 7])))
        assert np.ravel(found).tolist() == [i * 1000 + i % 7]


@pytest.fixture(scope="module")
def workers():
    with LocalCluster(3, imports=KIT) as cluster:
        yield cluster


@pytest.mark.parametrize("jobs", [40, pytest.param(200, marks=pytest.mark.slow("200 jobs"))])
def test_two_coordinators_at_once(workers, jobs):
    """Jobs of two hosts, each with different data, some on SPU: no value is mixed up."""

    def many(start):
        with mp.connect("http", workers.spec) as host:
            for i in range(start, start + jobs // 2):
                check(host, i, secret=i % 5 == 0)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(many, (0, 1000)))


@pytest.mark.slow("1,200 jobs, some on SPU")
@pytest.mark.timeout(900)
def test_a_thousand_jobs_leave_nothing_behind(workers):
    with mp.connect("http", workers.spec) as host:
        fronts = [worker.pid for worker in workers.workers]
        everyone = [os.getpid(), *fronts, *map(engine_of, fronts)]

        def measure():
            gc.collect()
            return {pid: (resident_mb(pid), files(pid)) for pid in everyone}

        def work(jobs):
            for i in range(jobs):
                check(host, i, secret=i % 10 == 0)

        work(200)  # until caches are full
        before = measure()
        work(1000)
        after = measure()
    for pid in everyone:
        (memory, opened), (more, open_now) = before[pid], after[pid]
        assert more - memory < 15, f"{pid} grew from {memory:.0f} to {more:.0f} MB"
        assert open_now - opened <= 2, f"{pid} has {open_now} files open, and had {opened}"
    print([(round(after[p][0] - before[p][0], 1), after[p][1] - before[p][1]) for p in everyone])


@pytest.mark.slow("moves 64 MB to workers and back, 23 times")
@pytest.mark.timeout(600)
def test_large_values_leave_nothing_behind(workers):
    """Values that are put, moved, kept and fetched are freed with their last reference."""
    x = np.zeros(64 * MB // 8)
    with mp.connect("http", workers.spec) as host:
        fronts = [worker.pid for worker in workers.workers]
        everyone = [os.getpid(), *fronts, *map(engine_of, fronts)]

        def work(jobs):
            for _ in range(jobs):
                moved = mp.evaluate(host, lambda x: mp.put("P1", mp.put("P0", x)), x)
                assert mp.fetch(host, moved).shape == x.shape

        work(3)
        before = {pid: resident_mb(pid) for pid in everyone}
        work(20)
        after = {pid: resident_mb(pid) for pid in everyone}
    assert all(after[pid] - before[pid] < 3 * 64 for pid in everyone), (before, after)


@pytest.mark.slow("120 sessions, each of which starts three engines")
def test_many_sessions_leave_nothing_behind(workers):
    def visit(times):
        for i in range(times):
            with mp.connect("http", workers.spec) as host:
                found = mp.fetch(
                    host, mp.evaluate(host, lambda x: mp.invoke(dialect.add, x, x), np.int64(i))
                )
                assert found == [2 * i] * 3

    fronts = [worker.pid for worker in workers.workers]
    everyone = [os.getpid(), *fronts, *map(fork_server_of, fronts)]  # engines end with sessions
    visit(20)
    before = {pid: (resident_mb(pid), files(pid), tasks(pid)) for pid in everyone}
    visit(100)
    after = {pid: (resident_mb(pid), files(pid), tasks(pid)) for pid in everyone}
    for pid in everyone:
        (memory, opened, threads) = before[pid]
        assert after[pid][0] - memory < 15, (before, after)
        assert after[pid][1] - opened <= 4, (before, after)
        assert after[pid][2] - threads <= 4, (before, after)
    assert not any(map(engines_of, fronts))


def tasks(pid):
    return len(os.listdir(f"/proc/{pid}/task"))

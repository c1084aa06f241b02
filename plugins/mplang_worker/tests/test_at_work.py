"""Who is known to be at work is waited for, and nobody else: not those who wait for each other."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_simulator import ThreadCommunicator
from mplang_testing.waiting import DEADLINE, in_time, wait_until
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.link.frames import Kind
from mplang_worker.link.inquiries import Inquiries
from working_ops import spend

import mplang_core as mp
from mplang_core.errors import RecvTimeoutError

WAIT, LONG = 0.4, 2.0  # seconds
SIGNS = 6  # at least a quarter of the time-out lies between two
RUN, LATE = "run", np.int64(7)


@pytest.fixture(params=[ThreadCommunicator, HttpCommunicator])
def parties(request):
    """Return a function that makes parties which evaluate a run."""
    with contextlib.ExitStack() as stack:

        def make(count: int, timeout: float = WAIT):
            comms = request.param.connected(count, timeout)
            for comm in comms:
                comm.open(RUN)
                stack.callback(getattr(getattr(comm, "_links", None), "close", lambda: None))
            for comm in comms:
                if isinstance(comm, HttpCommunicator):
                    for rank in range(count):
                        if rank != comm.rank:
                            comm._await_peer(rank, RUN)
                comm.set_evaluated(RUN, True)
            return comms

        yield make


def known(comm) -> list[int]:
    """Return a list that grows with each sign that a party is at work."""
    signs, take = [], comm.is_at_work
    comm.is_at_work = lambda run, rank: (signs.append(rank), take(run, rank))
    return signs


def test_who_works_is_waited_for(parties):
    a, b = parties(2, LONG)
    signs = known(b)
    with in_time(), ThreadPoolExecutor(1) as pool:
        found = pool.submit(b.recv, 0, f"{RUN}/1")
        wait_until(lambda: len(signs) > SIGNS)
        assert not found.done()
        a.send(1, f"{RUN}/1", LATE)
        assert found.result(DEADLINE) == LATE


def test_who_waits_for_one_that_works_is_waited_for(parties):
    a, b, c = parties(3, LONG)
    signs = known(c)
    with in_time(), ThreadPoolExecutor(2) as pool:
        there = pool.submit(b.recv, 0, f"{RUN}/1")
        found = pool.submit(c.recv, 1, f"{RUN}/2")
        wait_until(lambda: len(signs) > SIGNS)
        assert not there.done()
        assert not found.done()
        a.send(1, f"{RUN}/1", LATE)
        b.send(2, f"{RUN}/2", there.result(DEADLINE))
        assert found.result(DEADLINE) == LATE


@pytest.mark.parametrize("count", [2, 3])
def test_who_wait_for_each_other_do_not_wait_for_ever(parties, count):
    comms = parties(count)

    def receive(comm):
        try:
            comm.recv((comm.rank + 1) % count, f"{RUN}/{comm.rank}")
        finally:  # as a worker does
            comm.set_evaluated(RUN, False)

    with in_time(), ThreadPoolExecutor(count) as pool:
        found = [pool.submit(receive, comm) for comm in comms]
        for rank, each in enumerate(found):
            error = each.exception(DEADLINE)
            assert isinstance(error, RecvTimeoutError)
            assert f"for a message from party {(rank + 1) % count}, which is not known to be " in (
                str(error)
            )
            assert "timeout" in str(error)


def test_who_has_left_the_run_is_not_waited_for(parties):
    a, b = parties(2)
    a.set_evaluated(RUN, False)
    with in_time(), pytest.raises(RecvTimeoutError, match=r"waited 0\.4 s"):
        b.recv(0, f"{RUN}/1")


def test_who_says_that_it_works_is_waited_for_until_the_run_is_over():
    comms = HttpCommunicator.connected(2, LONG)
    comms[1].longest = 2 * LONG
    for comm in comms:
        comm.open(RUN)
        comm.set_evaluated(RUN, True)
    comms[1]._await_peer(0, RUN)
    with in_time(), pytest.raises(RecvTimeoutError, match=r"until the run had taken 4 s; .*job"):
        comms[1].recv(0, f"{RUN}/1")
    for comm in comms:
        comm._links.close()


def test_an_inquiry_is_answered_now_and_then_only():
    """A peer that asks all the time does not learn when each op of this party ends."""
    here = Inquiries(RUN, 3600.0)
    assert here.take(1, "run?1", ())
    assert not here.take(1, "run?2", ())
    assert here.take(2, "run?3", ())
    assert here.make(1)
    assert not here.make(1)


def test_an_inquiry_has_its_name_until_it_is_confirmed():
    """Else who asks again would not know the answer that comes just then."""
    here = Inquiries(RUN, 0.0)
    name = here.make(1)
    assert here.make(1) == name
    assert here.confirm(1, name) == {}
    assert here.confirm(1, name) is None
    assert here.make(1) not in ("", name)


def test_nobody_answers_for_a_run_that_is_none_or_of_another_peer():
    a, b = HttpCommunicator.connected(2, WAIT)
    a.open(RUN)
    a.set_evaluated(RUN, True)
    assert not a.inquired("node9", f"{RUN}?1")
    assert not a.inquired("node1", "other?1")
    b._links.get("node0").queue_control(Kind.CLOSED, f"{RUN}?1")  # it was not asked
    wait_until(lambda: True)
    assert not a._runs[RUN].at_work
    for comm in (a, b):
        comm._links.close()


# -- on both backends, before a message and before an op of an SPU


def check_waits(host, seconds: float) -> None:
    def trained(x):
        found = mp.device("P0")(spend)(x, seconds=seconds)
        doubled = mp.device("SP0")(lambda x: x * 2)(mp.device("P0")(spend)(found, seconds=seconds))
        return mp.put("P1", found), mp.reveal(doubled, to="P1")

    with mp.with_ctx(host):
        x = mp.put("P0", np.int64(21))
    with in_time():
        found = mp.fetch(host, mp.evaluate(host, trained, x))
    assert [int(each) for each in found] == [21, 42]


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_local_work_that_takes_longer_than_the_timeout_on_the_simulator(mode):
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=WAIT, mode=mode) as sim:
        check_waits(sim, 4 * WAIT)


@pytest.mark.long("works for as long as three timeouts, on workers")
def test_local_work_that_takes_longer_than_the_timeout_on_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    settings = {"imports": ("working_ops",), "timeouts": {"message": 3.0}}
    with (
        LocalCluster(2, mode="production", **settings) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        check_waits(host, 9.0)

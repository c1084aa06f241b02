"""Predicates are compared without waiting: who comes second finds that they differ."""

from __future__ import annotations

import functools
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_simulator import ThreadCommunicator, threads
from mplang_simulator.threads import LEAD
from mplang_testing.waiting import DEADLINE, NEVER, pause
from mplang_trace import SpanRecorder

from mplang_core import Mask
from mplang_core.errors import AbortedError, CommError, RecvTimeoutError
from mplang_core.ext import MAX_DIRECT

SIZES = pytest.mark.parametrize("parties", [2, 3, 8])


@pytest.fixture
def comms(parties):
    made = ThreadCommunicator.connected(parties, timeout=DEADLINE)
    for comm in made:
        comm.open("run")
    return made


@SIZES
def test_a_party_that_is_ahead_does_not_wait_and_those_that_follow_find_the_difference(comms):
    first, *others, last = comms
    assert first.compare("run/1=0", True) == Mask()
    for comm in others:
        assert comm.compare("run/1=0", True) == Mask()
    assert last.compare("run/1=0", False) == Mask.all(len(comms) - 1)


@SIZES
@pytest.mark.parametrize("known", [True, False])
def test_who_has_no_predicate_differs_from_all(comms, known):
    for comm in comms[:-1]:
        comm.compare("run/1=0", known)
    assert comms[-1].compare("run/1=0", None) == Mask.all(len(comms) - 1)


@pytest.mark.parametrize("parties", [2])
def test_a_party_waits_for_the_others_before_it_is_too_far_ahead(comms):
    for turn in range(LEAD - 1):
        comms[0].compare(f"run/1={turn}", True)
    comms[0].timeout = 0.1
    with pytest.raises(RecvTimeoutError, match="from party 1"):
        comms[0].compare(f"run/1={LEAD}", True)


@pytest.mark.parametrize("parties", [2])
def test_a_run_that_failed_or_ended_ends_who_is_ahead(comms):
    comms[0].compare("run/1=0", True)
    comms[1].abort("run", "party 1 failed")
    with pytest.raises(AbortedError, match="party 1 failed"):
        comms[0].compare("run/1=1", True)
    comms[0].close("run")
    with pytest.raises(CommError, match="no run 'run'"):
        comms[0].compare("run/1=2", True)


@pytest.mark.parametrize("parties", [2])
def test_a_run_that_ended_leaves_nothing_to_the_next_one(comms):
    for name in ("run", "next"):
        for comm in comms:
            comm.open(name)
    comms[0].compare("run/1=0", True)
    comms[0].compare("next/1=0", True)
    for comm in comms:
        comm.close("run")
    assert list(comms[0]._boards) == ["next"]


def computes(comm, turn):
    pause(1e-5, "an engine, which lets other threads run")


def in_turn(comms, count, compute):
    """Have each party compare; return the order in which they did, but for the last time."""
    order = []

    def party(comm):
        for turn in range(count):
            comm.compare(f"run/1={turn}", turn < count - 1)
            if turn < count - 1:  # after the last one, it is another one's turn
                order.append(comm.rank)
            compute(comm, turn)

    with ThreadPoolExecutor(len(comms)) as pool:
        list(pool.map(party, comms))
    return order


@pytest.mark.once
@pytest.mark.parametrize("parties", [3])
def test_parties_that_compare_run_one_after_the_other(comms, monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", NEVER)  # a busy machine may suspend whose turn it is
    order = in_turn(comms, LEAD - 1, computes)
    turns = [rank for rank, _ in itertools.groupby(order)]
    assert sorted(turns) == [0, 1, 2]


@pytest.mark.once
@pytest.mark.parametrize("parties", [3])
def test_they_do_so_again_after_code_was_compiled(comms, monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0.05)
    patient = functools.partial(monkeypatch.setattr, threads, "PATIENCE", NEVER)
    compiled = threading.Barrier(3, patient, DEADLINE)  # who has the turn waits for the others

    def compile_first(comm, turn):
        computes(comm, turn) if turn else compiled.wait()

    order = in_turn(comms, LEAD - 1, compile_first)
    assert len(list(itertools.groupby(order))) < len(order) / 5  # all but the pause


@pytest.mark.parametrize("parties", [3])
def test_a_party_that_is_slow_or_waits_in_a_loop_holds_up_nobody(comms):
    late, done = threading.Event(), []

    def slow(comm, turn):
        if comm.rank == 0 and turn == 1:
            assert late.wait(DEADLINE)  # for what the others do meanwhile

    def party(comm):
        in_turn([comm], 5, slow)
        done.append(comm.rank)
        if len(done) == 2:
            late.set()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(party, comms))
    assert done[-1] == 0


@pytest.mark.parametrize("parties", [2])
def test_parties_exchange_messages_in_a_loop_of_comparisons(comms):
    def exchange(comm, turn):
        comm.send(1 - comm.rank, f"run/2={turn}", turn)
        assert comm.recv(1 - comm.rank, f"run/2={turn}") == turn

    assert len(in_turn(comms, 3 * LEAD, exchange)) == 6 * LEAD - 2


def by_messages(comms, predicates):
    """Have the parties of a run that is recorded compare; return who differs from each."""
    for comm in comms:
        comm.record("run", SpanRecorder(comm.rank, "run"))
    with ThreadPoolExecutor(len(comms)) as pool:
        return list(pool.map(lambda comm, mine: comm.compare("run/1=0", mine), comms, predicates))


@SIZES
def test_a_run_that_is_recorded_compares_by_messages(comms):
    size = len(comms)
    assert by_messages(comms, [True] * size) == [Mask()] * size
    sent = [sum(link.sent_messages for link in comm.traffic().values()) for comm in comms]
    assert sent == ([size - 1] + [1] * (size - 1) if size > MAX_DIRECT else [size - 1] * size)


@SIZES
def test_all_parties_of_a_run_that_is_recorded_find_a_difference(comms):
    last = len(comms) - 1
    found = by_messages(comms, [True] * last + [False])
    assert found[0] == Mask.of(last)
    assert all(found)

"""What a communicator keeps of messages: for whom, how long, and how often."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from mplang_simulator import ThreadCommunicator
from mplang_testing.waiting import DEADLINE, NEVER, wait_until

from mplang_core.errors import AbortedError, CommError, RecvTimeoutError
from mplang_core.ext import Waiter


@pytest.fixture
def pair():
    a, b = ThreadCommunicator.connected(2, timeout=0.2)
    for comm in (a, b):
        comm.open("run")
    return a, b


def test_a_message_is_looked_at_without_taking_it(pair):
    a, b = pair
    assert not b.has_message(0, "run/1")
    assert b.peek_message(0, "run/1") is None
    a.send(1, "run/1", b"x")
    for _ in range(2):
        assert b.has_message(0, "run/1")
        assert b.peek_message(0, "run/1") == b"x"
    assert not b.has_message(1, "run/1")  # it is of another sender
    assert b.recv(0, "run/1") == b"x"
    assert not b.has_message(0, "run/1")


def test_there_is_no_message_of_a_run_that_is_not_open(pair):
    a, b = pair
    a.send(1, "run/1", b"x")
    b.close("run")
    assert not b.has_message(0, "run/1")
    assert b.peek_message(0, "never/1") is None


def test_a_duplicate_is_dropped_also_after_the_first_was_taken(pair):
    a, b = pair
    for key in ("run/1", "run/1|tag"):
        a.send(1, key, b"first")
        a.send(1, key, b"second")
        assert b.recv(0, key) == b"first"
        a.send(1, key, b"third")
        assert not b.has_message(0, key)


def test_a_place_that_is_forgotten_takes_no_room_and_no_message(pair):
    a, b = pair
    for i in range(100):
        a.send(1, f"run/1|{i}", b"x")
    a.send(1, "run/1", b"single")
    a.send(1, "run/2|0", b"other")
    b.recv(0, "run/1|0")
    b.forget("run/1")
    a.send(1, "run/1|late", b"x")
    assert not b.has_message(0, "run/1|5")
    assert not b.has_message(0, "run/1|late")
    assert b.recv(0, "run/1") == b"single"
    assert b.recv(0, "run/2|0") == b"other"
    assert not any(b.has_message(0, f"run/1|{i}") for i in range(100))


def test_a_place_that_is_forgotten_gives_its_memory_back(pair):
    a, b = pair

    def kept(sends, forgets):
        before = tracemalloc.get_traced_memory()[0]
        for i in range(2000):
            a.send(1, f"run/{sends}|{i:01000}", bytes(1000))
        if forgets:
            b.forget(f"run/{sends}")
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        assert kept(1, forgets=False) > 2000 * 2000  # the keys and the messages
        assert kept(2, forgets=True) < 2000 * 200  # a table that has been larger
    finally:
        tracemalloc.stop()


def test_a_place_of_no_open_run_is_not_forgotten(pair):
    with pytest.raises(CommError, match="in no run 'other'"):
        pair[0].forget("other/1")


def test_a_wait_ends_by_abort_or_in_time(pair):
    a, b = pair
    with pytest.raises(RecvTimeoutError, match=r"waited 0\.2 s"):
        b.recv(0, "run/1|x")
    b.timeout = NEVER
    with ThreadPoolExecutor(1) as pool:
        (found,) = waiting(pool, b, ["run/1|x"])
        a.abort("run", "party 0 failed")
        with pytest.raises(AbortedError, match="party 0 failed"):
            found.result(DEADLINE)


def waiting(pool, comm, keys):
    """Have a thread wait for each key, and return the futures."""
    found = [pool.submit(comm.recv, 0, key) for key in keys]
    waiters = comm._runs["run"].waiters
    wait_until(lambda: sum(map(len, list(waiters.values()))) == len(found))
    return found


def test_a_message_wakes_only_who_waits_for_it(pair, monkeypatch):
    a, b = pair
    b.timeout, woken, wake = NEVER, [], Waiter.wake
    monkeypatch.setattr(Waiter, "wake", lambda self: (woken.append(self), wake(self)))
    with ThreadPoolExecutor(8) as pool:
        found = waiting(pool, b, [f"run/1|{i}" for i in range(8)])
        for count, i in enumerate((3, 0, 7, 1, 2, 6, 5, 4), 1):
            a.send(1, f"run/1|{i}", i)
            assert found[i].result(DEADLINE) == i
            assert len(woken) == count
    assert not b._runs["run"].waiters


def test_of_two_that_wait_for_one_message_one_gets_it(pair):
    a, b = pair
    b.timeout = NEVER
    with ThreadPoolExecutor(2) as pool:
        found = waiting(pool, b, ["run/1", "run/1"])
        a.send(1, "run/1", b"x")
        a.abort("run", "for whom there is none")
        errors = [each.exception(DEADLINE) for each in found]
    assert [type(each) for each in errors if each] == [AbortedError]
    assert [each.result() for each in found if not each.exception()] == [b"x"]


def test_who_gave_up_does_not_get_the_message(pair):
    a, b = pair
    with pytest.raises(RecvTimeoutError):
        b.recv(0, "run/1")
    a.send(1, "run/1", b"x")
    assert b.recv(0, "run/1") == b"x"

"""Simulator: threads, deadlines, concurrent programs."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mplang_simulator import PartyThread, ThreadCommunicator
from mplang_testing.waiting import DEADLINE, NEVER, wait_until

import mplang_core as mp
from mplang_core.errors import AbortedError, CommError, PartyError, RecvTimeoutError


def connected(parties=2, timeout=DEADLINE):
    comms = ThreadCommunicator.connected(parties, timeout)
    for comm in comms:
        comm.open("run")
    return comms


# -- the communicator


def test_messages_are_matched_by_sender_and_key_not_by_arrival():
    a, b = connected()
    a.send(1, "run/2", "two")
    a.send(1, "run/1", "one")
    b.send(1, "run/1", "mine")
    assert (b.recv(0, "run/1"), b.recv(0, "run/2"), b.recv(1, "run/1")) == ("one", "two", "mine")


def test_a_duplicate_is_dropped_even_after_it_was_read():
    a, b = connected(timeout=0.05)
    a.send(1, "run/1", "first")
    a.send(1, "run/1", "second")
    assert b.recv(0, "run/1") == "first"
    a.send(1, "run/1", "third")
    with pytest.raises(RecvTimeoutError, match=r"waited 0\.05 s for a message from party 0"):
        b.recv(0, "run/1")


def test_a_message_for_no_open_run_is_refused():
    a, b = connected()
    with pytest.raises(CommError, match="party 1 is in no run 'other'"):
        a.send(1, "other/1", "x")
    b.close("run")
    with pytest.raises(CommError, match="in no run"):
        a.send(1, "run/1", "x")


def test_an_abort_wakes_those_who_wait():
    a, b = connected(timeout=NEVER)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(b.recv, 0, "run/1")
        wait_until(lambda: b._runs["run"].waiters)
        a.abort("run", "party 0 failed")
        with pytest.raises(AbortedError, match="party 1 stopped: party 0 failed") as error:
            waiting.result(DEADLINE)
    assert error.value.code == "L003"


def test_a_party_thread_runs_in_order_and_hands_on_errors():
    thread = PartyThread("test")
    seen = []
    futures = [thread.submit(lambda i=i: seen.append(i)) for i in range(5)]
    bad = thread.submit(lambda: 1 / 0)
    [future.result() for future in futures]
    with pytest.raises(ZeroDivisionError):
        bad.result()
    thread.stop()
    assert thread.join(DEADLINE)
    assert seen == list(range(5))


# -- the host


def program(x):
    y = mp.device("P0")(lambda v: v * 2)(mp.put("P0", x))
    return mp.pshfl_s(mp.put("P1", y), (0, 1), (1, 1))


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_two_programs_at_once_from_two_threads(mode):
    with mp.Simulator(mp.ClusterSpec.simple(2), mode=mode) as sim:
        compiled = mp.compile(program, np.zeros(3), cluster_spec=sim.cluster_spec)

        def many(start):
            for i in range(start, start + 50):
                found = mp.fetch(sim, mp.evaluate(sim, compiled, np.full(3, float(i))))
                np.testing.assert_array_equal(found, np.full((2, 3), 2.0 * i))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(many, range(0, 400, 100)))


def test_two_simulators_do_not_meet():
    cluster = mp.ClusterSpec.simple(2)
    with mp.Simulator(cluster) as one, mp.Simulator(cluster) as two:

        def secure(sim, value):
            run = lambda: mp.reveal(mp.seal(np.float32(value)) + np.float32(1))  # noqa: E731
            return [float(mp.fetch(sim, mp.evaluate(sim, run))[0]) for _ in range(3)]

        with ThreadPoolExecutor(2) as pool:
            a, b = pool.submit(secure, one, 10), pool.submit(secure, two, 20)
            assert a.result() == pytest.approx([11] * 3, abs=1e-3)
            assert b.result() == pytest.approx([21] * 3, abs=1e-3)


def test_values_go_when_nobody_has_them():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        result = mp.evaluate(sim, lambda: mp.put("P0", np.ones(10)) * 2)
        ref = weakref.ref(result.value)
        del result
        gc.collect()
        assert ref() is None


def test_an_interrupted_host_goes_on(monkeypatch):
    import concurrent.futures

    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=DEADLINE) as sim:
        wait = concurrent.futures.wait
        monkeypatch.setattr(
            concurrent.futures, "wait", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            mp.evaluate(sim, lambda: mp.constant(1))
        monkeypatch.setattr(concurrent.futures, "wait", wait)
        assert mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(1))) == [1, 1]


def test_a_listener_hears_of_each_op():
    heard = []

    class Listener:
        def op_started(self, op, index, total):
            heard.append(("+", op.opcode, index, total))

        def op_finished(self, op, index, total):
            heard.append(("-", op.opcode, index, total))

    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        mp.evaluate(sim, lambda: mp.pshfl_s(mp.constant(1), [0], [1]), listener=Listener())
    assert heard == [
        ("+", "simp.constant", 0, 2),
        ("-", "simp.constant", 0, 2),
        ("+", "simp.shuffle_static", 1, 2),
        ("-", "simp.shuffle_static", 1, 2),
    ]


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_a_timeout_is_positive(timeout):
    with pytest.raises(ValueError, match="positive"):
        mp.Simulator(mp.ClusterSpec.simple(1), timeout=timeout)


def test_a_failing_thread_does_not_strand_the_others():
    """Runs of other threads wait until a failure is handled; none is lost, none hangs."""
    stop = threading.Event()
    with mp.Simulator(mp.ClusterSpec.simple(2), timeout=DEADLINE) as sim:

        def fail():
            while not stop.is_set():
                with pytest.raises(PartyError):
                    mp.evaluate(sim, lambda: mp.pshfl(mp.constant(1), mp.constant(9)))

        def succeed():
            return [mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(2))) for _ in range(50)]

        with ThreadPoolExecutor(4) as pool:
            bad = pool.submit(fail)
            good = [pool.submit(succeed) for _ in range(3)]
            for future in good:
                assert future.result(DEADLINE) == [[2, 2]] * 50
            stop.set()
            bad.result(DEADLINE)


def test_a_simulator_that_is_dropped_leaves_no_threads():
    before = set(threading.enumerate())
    for _ in range(3):
        sim = mp.Simulator(mp.ClusterSpec.simple(3))
        mp.evaluate(sim, lambda: mp.constant(1))
        del sim
    gc.collect()
    wait_until(lambda: not set(threading.enumerate()) - before, "that all threads ended")

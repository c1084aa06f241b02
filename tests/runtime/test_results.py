"""Outcomes of runs: waiting for them hears a signal, whichever thread takes it."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future

import pytest
from mplang_testing.waiting import in_time

from mplang_core.ext import wait_for_outcome


def test_the_first_failure_ends_the_waiting():
    failed, runs = Future(), Future()
    failed.set_exception(ValueError())
    with in_time():
        wait_for_outcome([runs, failed])
    assert not runs.done()


def test_all_are_waited_for():
    first, last = Future(), Future()
    first.set_result(1)
    timer = threading.Timer(1.2, last.set_result, [2])  # more than one interval later
    timer.start()
    wait_for_outcome([first, last])
    assert last.done()


@pytest.fixture
def taken_by_others():
    """Have SIGINT taken by other threads: the main one is not woken, as if it came too early."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def test_a_signal_that_does_not_wake_the_waiting_thread_interrupts_it(taken_by_others):
    def interrupt():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.raise_signal(signal.SIGINT)

    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt), in_time():
        wait_for_outcome([Future()])

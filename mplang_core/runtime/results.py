"""Results of parties: their types, and the outcome of a run."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from mplang_core.errors import AbortedError

_INTERVAL = 0.5  # seconds, in which a signal is noticed


def outcome_of(future: Future[list[Any]]) -> list[Any] | BaseException:
    """Return a party's results, or its error, as :meth:`SimpHost._collect` gives them.

    Example:
        >>> outcome_of(Future())
        AbortedError('it did not end in time')
    """
    if not future.done():
        return AbortedError("it did not end in time")
    return future.exception() or future.result()


def wait_for_outcome(futures: Sequence[Future[Any]]) -> None:
    """Wait until all parties have ended, or one has failed.

    A signal interrupts it always: one that comes just before a thread sleeps, or that another
    thread takes, does not end Python's own waiting without a timeout.

    Raises:
        KeyboardInterrupt: the user interrupts it.
    """
    while True:
        found = concurrent.futures.wait(futures, _INTERVAL, concurrent.futures.FIRST_EXCEPTION)
        if not found.not_done or any(each.exception() for each in found.done):
            return

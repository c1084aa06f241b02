"""Failure report of a run: its first cause, and the locations of the other parties."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from mplang_core.ext import AbortedError, AdmissionError, PartyState
from mplang_http.coordinator.client import LostWorkerError

CAUSE_TIMEOUT = 0.5  # seconds that the cause may arrive after the failures that it leads to


def wait_for_cause(futures: Sequence[Future[list[Any]]]) -> None:
    """Wait briefly for a failure that is not a consequence of another party's failure.

    Where one party refuses the program, others may, too: so all of them are waited for.
    """
    deadline = time.monotonic() + CAUSE_TIMEOUT
    while (left := deadline - time.monotonic()) > 0:
        done = [future for future in futures if future.done()]
        pending = [future for future in futures if future not in done]
        causes = [e for f in done if not isinstance(e := f.exception(), AbortedError | None)]
        is_refused = all(isinstance(each, AdmissionError) for each in causes)
        if not pending or (causes and not is_refused):
            return
        concurrent.futures.wait(pending, left, concurrent.futures.FIRST_COMPLETED)


def abort_reason(futures: Mapping[int, Future[list[Any]]]) -> str:
    """Return the reason of an abort for the other parties."""
    for rank, future in futures.items():
        error = future.exception() if future.done() else None
        if isinstance(error, LostWorkerError):
            return f"party {rank} was lost"
        if error is not None and not isinstance(error, AbortedError):
            line = getattr(error, "location", None)
            at = f" at {line}" if line else ""
            return f"party {rank} failed in {getattr(error, 'op', None)}{at}"
    return "another party failed"


def party_locations(
    failures: Sequence[tuple[int, BaseException]],
    states: Sequence[PartyState],
    excluded: int,
    party: Callable[[int], str] = "party {}".format,
) -> Iterator[str]:
    """Yield the locations of the parties when a run failed.

    Args:
        failures: rank and error of each party that failed.
        states: last known state of each party, for one whose error came too late.
        excluded: rank of a party to leave out.
        party: the text for a rank, as ``SimpHost.party`` gives it.

    Yields:
        A clause per location, such as ``party 1, party 2 were in jax.run at "a.py:7" then``.
    """
    ranks_by_location: dict[str, list[int]] = {}
    for rank, error in failures:
        op, source_line = getattr(error, "op", None), getattr(error, "location", None)
        if op is None:
            op, source_line = states[rank].op, states[rank].location
        if op is not None and rank != excluded:
            ranks_by_location.setdefault(
                f"in {op}" + (f" at {source_line}" if source_line else ""), []
            ).append(rank)
    silent = [
        rank
        for rank, error in failures
        if not states[rank].observable and rank != excluded and getattr(error, "op", None) is None
    ]
    if silent:
        verb = "is" if len(silent) == 1 else "are"
        yield f"{', '.join(map(party, silent))} {verb} not observable, so their ops are unknown"
    for location, ranks in ranks_by_location.items():
        verb = "was" if len(ranks) == 1 else "were"
        yield f"{', '.join(map(party, ranks))} {verb} {location} then"

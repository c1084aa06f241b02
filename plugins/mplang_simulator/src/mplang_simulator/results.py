"""Results of parties: their types, and the outcome of a run."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from mplang_core.ext import AbortedError


def outcome_of(future: Future[list[Any]]) -> list[Any] | BaseException:
    """Return a party's results, or its error, as :meth:`SimpHost._collect` gives them.

    Example:
        >>> outcome_of(Future())
        AbortedError('it did not end in time')
    """
    if not future.done():
        return AbortedError("it did not end in time")
    return future.exception() or future.result()

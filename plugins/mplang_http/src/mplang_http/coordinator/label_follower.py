"""Labels of the values of a host, followed while the workers run, which costs a run no time."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from mplang_analysis import Followed, Memory, Stored, remember

from mplang_core import Program
from mplang_core.ext import HostVar


class LabelFollower:
    """Labels of what the parties got in the runs of a session, followed run by run.

    Args:
        pool: threads to follow runs in.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._memory = Memory()
        self._next: Callable[[], Followed] | None = None
        self._followed: Future[Followed] | None = None

    def expect(self, program: Program, args: Sequence[HostVar], stored: Stored) -> None:
        """Take note of the next run, once the last one is followed.

        Args:
            program: its program.
            args: its inputs.
            stored: the labels of what the parties have in storage.
        """
        if self._followed is not None:  # of a run that failed or was interrupted
            concurrent.futures.wait([self._followed])
        self._next = functools.partial(self._memory.follow_values, program, args, stored)

    def begin(self) -> None:
        """Begin to follow the run, as the workers have it; do nothing if that was done."""
        follow, self._next = self._next, None
        if follow is not None:
            self._followed = self._pool.submit(follow)

    def remember(self, results: Sequence[HostVar]) -> None:
        """Record the labels of the results of the run."""
        self.begin()
        assert self._followed is not None
        remember(results, self._followed.result())

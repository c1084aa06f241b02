"""Budget of failed runs: how often the ops of one coordinator may fail at this worker."""

from __future__ import annotations

import logging
from collections import Counter

from mplang_analysis.ext import in_quotes

from mplang_core.ext import Advice, Refusal
from mplang_worker.base.errors import RequestError

Key = tuple[str, str, str]
"""Name of a run: coordinator, session, run."""

log = logging.getLogger("mplang.http.front")


class FailureBudget:
    """Counts failed runs per coordinator, and refuses its runs once its budget is used up.

    Whether an op fails may depend on private data, so each run tells its coordinator a bit. A run
    reserves a failure from its submission to its end, so concurrent runs cannot exceed the budget.

    The front may excuse a run that fails for a reason that it sees by itself, and that depends on
    no data: a source of this party that cannot be reached. What an engine says excuses nothing.

    The front keeps the budget, so it survives the engine. A run in which the engine ends has
    failed, too. The budget starts anew with the worker.

    Args:
        worker: name of the worker, for errors.
        limit: maximum number of failed runs of a coordinator.

    Attributes:
        limit: maximum number of failed runs of a coordinator.

    Example:
        >>> budget = FailureBudget("alice", 1)
        >>> budget.begin(("host", "s", "s-0"))
        True
        >>> budget.end(("host", "s", "s-0"), failed=True)
        True
        >>> budget.used("host")
        1
        >>> budget.begin(("host", "s", "s-1"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        mplang_worker.base.errors.RequestError: host has used up its 1 failed runs at alice, ...
    """

    def __init__(self, worker: str, limit: int) -> None:
        self.limit = limit
        self._worker = worker
        self._used: Counter[str] = Counter()
        self._active: set[Key] = set()
        self._excused: set[Key] = set()

    def used(self, coordinator: str) -> int:
        """Return the number of failed runs of a coordinator."""
        return self._used[coordinator]

    def spent(self) -> dict[str, int]:
        """Return the number of failed runs of each coordinator that has some."""
        return {coordinator: used for coordinator, used in sorted(self._used.items()) if used}

    def reset(self, coordinator: str) -> int:
        """Forget the failed runs of a coordinator, and return how many there were."""
        return self._used.pop(coordinator, 0)

    def begin(self, run: Key) -> bool:
        """Reserve a failure for a run, until :meth:`end`.

        Args:
            run: name of the run.

        Returns:
            Whether the reservation is new; else a run of that name is active.

        Raises:
            RequestError: the coordinator has used up its budget, or might by its active runs.
        """
        if run in self._active:
            return False
        coordinator, used = run[0], self.used(run[0])
        if used >= self.limit:
            raise self._refused(coordinator)
        active = sum(key[0] == coordinator for key in self._active)
        if used + active >= self.limit:
            raise RequestError(
                429,
                "busy",
                f"{coordinator} has {self.limit - used} of {self.limit} failed runs left at "
                f"{self._worker}, and {active} active runs, which may fail; wait for one to end",
            )
        self._active.add(run)
        return True

    def excuse(self, run: Key) -> None:
        """Mark an active run so that its failure does not count, as the front has seen why.

        What depends on private data is not an excuse: a deadline, a limit, a full sink, a query
        that fails, the end of an engine or an MPC process.

        Args:
            run: name of the run.
        """
        if run in self._active:
            self._excused.add(run)

    def _refused(self, coordinator: str) -> RequestError:
        """Return the error of a coordinator that has used up its budget."""
        error = RequestError(
            403,
            "failures",
            f"{coordinator} has used up its {self.limit} failed runs at {self._worker}, which "
            "runs nothing more of it, since failures may disclose private data; the owner of "
            f"{self._worker} can raise limits.failures, and restart the worker",
        )
        text = "a larger limit permits more failures, which may disclose more; counting begins anew"
        change = f"limits: {{failures: {2 * self.limit}}}"
        advice = Advice("setting", text, change, by=self._worker)
        resource = f"Coordinator::{in_quotes(coordinator)}"
        made = Refusal(
            self._worker, "failures", "run", resource, reason=error.text, advice=(advice,)
        )
        error.refusals = (made,)
        return error

    def end(self, run: Key, *, failed: bool) -> bool:
        """Release the reservation of a run, if it has one.

        Args:
            run: name of the run.
            failed: whether one of its ops failed here.

        Returns:
            Whether it had one; else its end is known already, and is not counted again.
        """
        if run not in self._active:
            return False
        excused = run in self._excused
        self._active.remove(run)
        self._excused.discard(run)
        if failed and excused:
            log.warning(
                "run %s failed here as a source cannot be reached: it does not count", run[2]
            )
        elif failed:
            coordinator = run[0]
            self._used[coordinator] += 1
            log.warning(
                "run %s failed here: %s has used %d of its %d failed runs",
                run[2], coordinator, self.used(coordinator), self.limit,
            )  # fmt: skip
        return True

    def session_ended(self, coordinator: str, session: str, *, failed: bool) -> None:
        """Release the reservations of a session.

        Args:
            coordinator: name of the coordinator.
            session: name of the session.
            failed: whether its engine has ended, so that its active runs count as failed: one of
                them may have ended it.
        """
        for run in sorted(key for key in self._active if key[:2] == (coordinator, session)):
            self._excused.discard(run)
            self.end(run, failed=failed)

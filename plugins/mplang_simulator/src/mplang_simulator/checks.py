"""Meetings of a simulator's parties, where a kernel compares all shares in plain.

Only simulators have them, since their parties share memory. What is handed over there is no
message, and not counted as traffic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mplang_core.ext import (
    AbortedError,
    Diagnostic,
    Location,
    PrecisionError,
    PrecisionWarning,
    warn,
)

CheckMode: TypeAlias = Literal["warn", "raise"]


@dataclass(slots=True)
class _Meeting:
    brought: dict[int, Any] = field(default_factory=dict)
    verdict: Future[Diagnostic | None] = field(default_factory=Future)


class Meetings:
    """The number checks of one simulator.

    Args:
        mode: ``"warn"`` collects findings for :meth:`warn`; ``"raise"`` ends the run.
        budget: how long the op that gave a wrong number may be searched for, in times of the run.

    Attributes:
        mode: that mode.
        budget: that budget.
        told: what a kernel has told already and need not examine again.
    """

    def __init__(self, mode: CheckMode, budget: float = 1.0) -> None:
        self.mode = mode
        self.budget = budget
        self.told: set[Any] = set()
        self._lock = threading.Lock()
        self._meetings: dict[str, _Meeting] = {}
        self._findings: list[Diagnostic] = []
        self._shown: set[tuple[Location | None, str]] = set()
        self._aborted: set[str] = set()

    def begin(self) -> None:
        """Reset reported findings at the start of a program."""
        with self._lock:
            self.told.clear()
            self._shown.clear()

    def meet(
        self,
        key: str,
        rank: int,
        members: int,
        mine: Any,
        check: Callable[[Mapping[int, Any]], Diagnostic | None],
    ) -> None:
        """Hand over what one party has. The last one to come checks, and the others wait.

        Args:
            key: the op's place, which begins with the run.
            rank: this party.
            members: how many parties come.
            mine: what this party has.
            check: is given what all have, by rank.

        Raises:
            PrecisionError: the check found something, in the mode ``"raise"``.
            AbortedError: the run ended before all had come.
        """
        with self._lock:
            if _run(key) in self._aborted:
                raise AbortedError(f"party {rank} stopped: another party failed")
            meeting = self._meetings.setdefault(key, _Meeting())
            meeting.brought[rank] = mine
            is_last = len(meeting.brought) == members
            if is_last:
                del self._meetings[key]
        if is_last:
            self._decide(meeting, check)
        finding = meeting.verdict.result()
        if finding is not None and self.mode == "raise":
            self.tell(finding)

    def _decide(
        self, meeting: _Meeting, check: Callable[[Mapping[int, Any]], Diagnostic | None]
    ) -> None:
        try:
            finding = check(meeting.brought)
        except BaseException as error:
            meeting.verdict.set_exception(error)
            return
        if finding is not None and self.mode == "warn":
            self.tell(finding)
        meeting.verdict.set_result(finding)

    def tell(self, finding: Diagnostic) -> None:
        """Report what one party found by itself.

        Raises:
            PrecisionError: the mode is ``"raise"``.
        """
        if self.mode == "raise":
            raise PrecisionError(str(finding))
        with self._lock:
            self._findings.append(finding)

    def abort(self, run: str) -> None:
        """End all waiting in a run."""
        with self._lock:
            self._aborted.add(run)
            ended = [key for key in self._meetings if _run(key) == run]
            meetings = [self._meetings.pop(key) for key in ended]
        for meeting in meetings:
            meeting.verdict.set_exception(AbortedError("stopped: another party failed"))

    def warn(self) -> None:
        """Show the findings as warnings, each line and op once; called by the host's thread."""
        with self._lock:
            findings, self._findings = self._findings, []
        for finding in findings:
            if (finding.line, finding.op) not in self._shown:
                self._shown.add((finding.line, finding.op))
                _show(finding)


def _show(finding: Diagnostic) -> None:
    warn(finding.text, PrecisionWarning, finding.line or Location("<unknown>", 0))


def _run(key: str) -> str:
    return key.partition("/")[0]

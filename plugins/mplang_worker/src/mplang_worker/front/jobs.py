"""Jobs of one session as the front knows them, so that it answers for an engine that is busy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import InitVar, asdict, dataclass, field
from typing import Any, TypeAlias

from mplang_core.ext import AdmissionError, Failure
from mplang_worker.base.errors import RequestError
from mplang_worker.base.step_clock import StepClock

Status: TypeAlias = dict[str, Any]
"""Status of a job, or its error, as plain data."""

MAX_KNOWN = 1000  # jobs of a session by default; those that have ended take about 1 KB each
_OVER = asyncio.Event()  # of all jobs that have ended, as an event of its own takes 800 bytes
_OVER.set()


@dataclass(slots=True)
class KnownJob:
    """Job as the front knows it.

    Args:
        first: its first status.

    Attributes:
        begun: time when it was submitted, or when it was its turn, if it was queued.
        cancelled: time when it was cancelled, if it was.
        settled: whether none of its ops runs any more.
        refused: why the engine did not take it.
        verdict: the error by which the gate refused it, in place of what the engine says.
        receipt: what the gate has signed of its log once the job was on record; empty before.
        approval: the approval that it uses, if it needs one.
        accepted: set once the engine has taken or refused it.
        clock: has the steps at which its end is told; ``None`` if it is told at once.
        ended: set once its status is final.
    """

    first: InitVar[Status]
    begun: float = field(default_factory=time.monotonic)
    cancelled: float | None = None
    settled: bool = False
    refused: RequestError | None = None
    verdict: Status | None = None
    receipt: str = ""
    approval: str = ""
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    clock: StepClock | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _status: Status | str = field(init=False)  # in JSON once it is final, of a fifth of the size

    def __post_init__(self, first: Status) -> None:
        self._status = first

    @property
    def status(self) -> Status:
        """Its last status."""
        if isinstance(self._status, str):
            final: Status = json.loads(self._status)
            return final
        return self._status

    def update(self, status: Status) -> None:
        """Record its status, unless it has a final one."""
        if not self.ended.is_set():
            self._status = status

    def end(self) -> None:
        """Wake whoever waits for its end, and keep what is known of it in little memory."""
        if self.ended is _OVER:
            return
        self.ended.set()
        self.accepted.set()
        self.accepted = self.ended = _OVER
        with contextlib.suppress(TypeError, ValueError, RecursionError):  # of a hostile engine
            self._status = json.dumps(self._status)


class FrontJobs:
    """Jobs of one session.

    Args:
        most: number of jobs that are kept; of more the first that have ended are forgotten.
    """

    def __init__(self, most: int = MAX_KNOWN) -> None:
        self._most = most
        self._known: dict[str, KnownJob] = {}
        self._active: set[str] = set()
        self._has_settled = asyncio.Event()

    @property
    def active(self) -> int:
        """Number of jobs that have not ended."""
        return len(self._active)

    @property
    def unfinished(self) -> list[str]:
        """Names of the jobs that have not ended."""
        return sorted(self._active)

    def get(self, run: str) -> KnownJob | None:
        """Return a job."""
        return self._known.get(run)

    def begin(self, run: str) -> KnownJob:
        """Return the job that is submitted now, or was submitted before."""
        found = self._known.get(run)
        if found is None:
            status: Status = {
                "run": run,
                "state": "queued",
                "held": [],
                "error": None,
                "ended": None,
            }
            found = self._known[run] = KnownJob(status)
            self._active.add(run)
            self._forget()
        return found

    def _forget(self) -> None:
        """Forget the job that was submitted first and has ended, if there are many."""
        if len(self._known) > self._most:
            gone = next((run for run, job in self._known.items() if job.settled), None)
            if gone is not None:
                del self._known[gone]

    @property
    def executing(self) -> str | None:
        """Name of the run whose ops the engine executes; ``None`` if that is not certain.

        Runs are executed one after another, but one that was stopped may go on beside the next.
        """
        run, job = next(((k, v) for k, v in self._known.items() if not v.settled), (None, None))
        return None if job is None or _is_stopped(job) else run

    def refuse(self, run: str, error: RequestError) -> None:
        """Record that the engine has not taken a job."""
        job = self._known.pop(run, None)
        if job is not None:
            job.refused, job.settled = error, True
            self._has_settled.set()
            self._end(run, job)

    def update(self, status: Status, *, settled: bool = False) -> None:
        """Record the status of a job."""
        job = self._known.get(status["run"])
        if job is not None:
            job.update(_judged(status, job))
            job.accepted.set()
            self._settle(job, settled)
            self._has_settled.set()
            if job.status["ended"] is not None:
                self._end(status["run"], job)

    def _settle(self, job: KnownJob, settled: bool) -> None:
        """Record whether a job has settled; the time of those behind it begins with their turn."""
        if not settled or job.settled:
            return
        first, *others = (each for each in self._known.values() if not each.settled)
        job.settled = True
        for each in others if job is first else ():
            each.begun = time.monotonic()

    def judged(self, run: str, status: Status) -> Status:
        """Return the status of a job, as its engine tells it, with what the gate says of it."""
        return _judged(status, self._known.get(run))

    def judge(self, run: str, error: AdmissionError) -> None:
        """Record that the gate refuses a job: the front says why, as its engine cannot be trusted.

        Args:
            run: name of the run.
            error: the refusal.
        """
        job = self._known.get(run)
        if job is not None:
            first = next(iter(error.refusals), None)
            place = first.location if first is not None and first.location else None
            failure = asdict(Failure(type(error).__name__, str(error), None, place, error.code))
            job.verdict = failure | {"refusals": [asdict(each) for each in error.refusals]}

    def give_receipt(self, run: str, receipt: str, approval: str = "") -> None:
        """Record what the coordinator of a job gets of the log, and the approval that it uses."""
        job = self._known.get(run)
        if job is not None:
            job.receipt, job.approval = receipt, approval

    def start_clock(self, run: str) -> KnownJob:
        """Report the end of a job at clock ticks from now on; return the job.

        Its engine waits for them; the front does if the engine ends.

        Raises:
            LookupError: there is no such job.
        """
        job = self._known[run]
        if not job.ended.is_set():
            job.clock = StepClock()
            job.update({**job.status, "state": "running"})
        return job

    async def wait_for_step(self) -> None:
        """Wait until the end of all jobs may be told: at once, unless one has a clock."""
        clocks = self._clocks()
        if clocks:
            await asyncio.sleep(max(clock.left() for clock in clocks))

    async def wait_for_stopped(self) -> None:
        """Wait until nothing runs any more of the jobs that have failed or were cancelled.

        That is soon, or their engine is ended: see :meth:`overdue`.
        """
        while any(not each.settled and _is_stopped(each) for each in self._known.values()):
            self._has_settled.clear()
            await self._has_settled.wait()

    @property
    def has_clock(self) -> bool:
        """Whether the end of a job is to be told at a step of its clock."""
        return bool(self._clocks())

    def _clocks(self) -> list[StepClock]:
        active = (self._known.get(run) for run in self._active)
        return [job.clock for job in active if job is not None and job.clock is not None]

    def _end(self, run: str, job: KnownJob) -> None:
        self._active.discard(run)
        job.end()

    def cancel(self, run: str) -> None:
        """Record that a job was asked to end."""
        job = self._known.get(run)
        if job is not None and job.cancelled is None:
            job.cancelled = time.monotonic()

    def overdue(self, longest: float, grace: float) -> str | None:
        """Return which job should have ended, and why; ``None`` if none should.

        Args:
            longest: seconds that a job may take.
            grace: seconds that a job may go on after it was cancelled, or has failed.
        """
        now = time.monotonic()
        for run, job in self._known.items():
            if job.settled:
                continue
            if job.ended.is_set() and job.cancelled is None:
                job.cancelled = now  # it has failed elsewhere, and goes on here
            if job.cancelled is not None and now - job.cancelled > grace:
                return f"the run {run} was stopped, and its op did not end within {grace:g} s"
            if now - job.begun > longest:
                return f"the run {run} took longer than a job may here, {longest:g} s"
        return None

    def fail(self, text: str, kind: str = "RunError") -> None:
        """Fail all jobs that have not ended, as the engine has.

        Args:
            text: text of their error.
            kind: name of the error's class.
        """
        error = asdict(Failure(kind, text))
        for run in list(self._known):
            failed = {"run": run, "state": "failed", "held": [], "error": error}
            self.update(failed | {"ended": time.time()}, settled=True)


def _is_stopped(job: KnownJob) -> bool:
    """Return whether a job was to end, whether or not it did."""
    return job.ended.is_set() or job.cancelled is not None


def _judged(status: Status, job: KnownJob | None) -> Status:
    """Return the status of a job with receipt and refusal of the gate, and with no others.

    Args:
        status: as its engine tells it, which a coordinator's code may have taken over.
        job: what the front knows of it.
    """
    verdict = None if job is None else job.verdict
    status = {**status, "receipt": "" if job is None else job.receipt}
    if verdict is not None and status.get("ended") is not None:
        return {**status, "state": "failed", "held": [], "error": verdict}
    error = status.get("error")
    if not isinstance(error, dict) or "refusals" not in error:
        return status
    return {**status, "error": {k: v for k, v in error.items() if k != "refusals"}}

"""What one coordinator has at a worker: an interpreter, jobs in order, and values."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mplang_core.errors import AbortedError
from mplang_core.ir import Operation, Program
from mplang_core.mask import Mask
from mplang_core.simp import WorkerInterpreter
from mplang_core.types import BaseType, MPType
from mplang_http.comm import HttpCommunicator
from mplang_http.refusal import Refusal, told

__all__ = ["Job", "Session", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that stays here."""

    kind: BaseType
    value: Any


@dataclass(slots=True)
class Job:
    """One run of a program.

    Attributes:
        run: its name.
        program: the program's digest.
        state: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        held: once it is done, per result whether this party holds it.
        error: once it has failed, why.
        at: the op that runs, or ran last.
    """

    run: str
    program: str
    state: str = "queued"
    held: list[bool] = field(default_factory=list)
    error: dict[str, Any] | None = None
    begun: float = field(default_factory=time.time)
    ended: float | None = None
    at: Operation | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    def op_started(self, op: Operation, index: int, total: int) -> None:
        """Note where it is."""
        self.at = op

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        """Note nothing: the next op begins at once."""

    def status(self) -> dict[str, Any]:
        """Return what the coordinator may know."""
        return {
            "at": self.place(),
            "run": self.run,
            "program": self.program,
            "state": self.state,
            "held": self.held,
            "error": self.error,
            "begun": self.begun,
            "ended": self.ended,
        }

    def place(self) -> dict[str, str | None]:
        """Return the op that runs, or ran last, and its line in the coordinator's source."""
        if self.at is None:
            return {"op": None, "location": None}
        where = self.at.location
        return {"op": self.at.opcode, "location": str(where) if where else None}


class Session:
    """The part of a worker that belongs to one coordinator's host.

    Args:
        name: the session; its runs begin with it.
        comm: how its programs talk to the other parties.
        insecure: whether protocols that are for debugging may run.
        keep: how many jobs are remembered.
        ended: is told of each job that has ended.
    """

    def __init__(
        self,
        name: str,
        comm: HttpCommunicator,
        *,
        insecure: bool,
        keep: int,
        ended: Callable[[Job], None],
    ) -> None:
        self.name = name
        self.comm = comm
        self.generation = -1
        self.seen = time.monotonic()
        self._insecure = insecure
        self._keep = keep
        self._ended = ended
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._values: dict[str, Stored] = {}
        self._lock = threading.RLock()
        self._thread: ThreadPoolExecutor | None = None
        self._worker: WorkerInterpreter | None = None

    def renew(self, generation: int) -> None:
        """Begin a generation: what kernels kept is let go of, jobs that still run are aborted."""
        if generation <= self.generation:
            return
        self._abort_all("another generation of the session began")
        with self._lock:
            self.generation = generation
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"mplang-{self.name[:8]}")
            self._worker = WorkerInterpreter(
                self.comm,
                session=f"{self.name}.{generation}",
                insecure=self._insecure,
                timeout=self.comm.timeout,
            )

    # -- jobs

    def submit(self, run: str, program: Program, inputs: Sequence[Any]) -> Job:
        """Queue a run of a program.

        Raises:
            Refusal: it does not fit this session.
        """
        self._check(run, program, inputs)
        with self._lock:
            if run in self._jobs:
                raise Refusal(409, "replayed", f"there was a run {run!r} before")
            while len(self._jobs) >= self._keep:
                self._forget_one()
            job = self._jobs[run] = Job(run, program.digest)
            assert self._thread is not None
            assert self._worker is not None
            worker = self._worker
        self.comm.open(run)
        self._thread.submit(self._work, worker, job, program, inputs)
        return job

    def _check(self, run: str, program: Program, inputs: Sequence[Any]) -> None:
        if not run.startswith(f"{self.name}-") or "/" in run:
            raise Refusal(403, "forged", f"the runs of this session begin with {self.name}-")
        all_, mine = Mask.all(self.comm.world_size), Mask.of(self.comm.rank)
        if program.mask not in (all_, mine):
            raise Refusal(422, "forged", f"the program is for {program.mask}, not {all_} or {mine}")
        taken = program.graph.inputs
        if len(taken) != len(inputs):
            raise Refusal(422, "inputs", f"the program takes {len(taken)} inputs")
        for i, (wanted, value) in enumerate(zip(taken, inputs, strict=True)):
            kind = wanted.type
            assert isinstance(kind, MPType)
            if value is not None and kind.base.mismatch(value):
                raise Refusal(422, "inputs", f"input {i} is no {kind.base}")

    def _forget_one(self) -> None:
        over = next((run for run, job in self._jobs.items() if job.over), None)
        if over is None:
            raise Refusal(429, "busy", f"{len(self._jobs)} jobs of this session have not ended")
        del self._jobs[over]

    def _work(
        self, worker: WorkerInterpreter, job: Job, program: Program, inputs: Sequence[Any]
    ) -> None:
        with self._lock:
            if job.over:
                return
            job.state = "running"
        try:
            outs = worker.evaluate(program, inputs, job.run, job)
        except BaseException as error:
            self.end(job, "failed", error=told(error))
        else:
            self._keep_results(job, program, outs)
        finally:
            self.comm.close(job.run)

    def _keep_results(self, job: Job, program: Program, outs: Sequence[Any]) -> None:
        with self._lock:
            if not job.over:
                for i, (value, out) in enumerate(zip(outs, program.graph.outputs, strict=True)):
                    if value is not None:
                        assert isinstance(out.type, MPType)
                        self._values[f"{job.run}.{i}"] = Stored(out.type.base, value)
        self.end(job, "done", held=[value is not None for value in outs])

    def end(
        self,
        job: Job,
        state: str,
        held: Sequence[bool] = (),
        error: dict[str, Any] | None = None,
    ) -> None:
        """Note how a job ended; the first word counts."""
        with self._lock:
            if job.over:
                return
            job.state, job.held, job.error, job.ended = state, list(held), error, time.time()
        self._ended(job)

    def job(self, run: str) -> Job:
        """Return a job.

        Raises:
            Refusal: there is none.
        """
        found = self._jobs.get(run)
        if found is None:
            raise Refusal(404, "unknown-job", f"no job {run[:100]!r} in this session")
        return found

    def jobs(self) -> list[Job]:
        """Return the jobs that are remembered, in order."""
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, run: str, reason: str) -> Job:
        """End a job here and at the others; nothing happens where it has ended."""
        job = self.job(run)
        if not job.over:
            queued = job.state == "queued"
            error = AbortedError(f"party {self.comm.rank} stopped: {reason}")
            self.end(job, "cancelled", error=told(error) | job.place())
            self.comm.abort(run, reason)
            if queued:
                self.comm.close(run)
        return job

    def _abort_all(self, reason: str) -> None:
        for job in self.jobs():
            if not job.over:
                self.cancel(job.run, reason)

    # -- values

    def put(self, name: str, stored: Stored) -> None:
        """Keep a value.

        Raises:
            Refusal: there is one of that name.
        """
        with self._lock:
            if name in self._values:
                raise Refusal(409, "taken", f"there is a value {name!r} already")
            self._values[name] = stored

    def value(self, name: str) -> Stored:
        """Return a value.

        Raises:
            Refusal: there is none.
        """
        found = self._values.get(name)
        if found is None:
            raise Refusal(404, "unknown-value", f"no value {name[:100]!r} in this session")
        return found

    def release(self, names: Sequence[str]) -> int:
        """Let go of values; return how many there were."""
        with self._lock:
            return sum(self._values.pop(name, None) is not None for name in names)

    def __len__(self) -> int:
        return len(self._values)

    def close(self, reason: str) -> None:
        """End all jobs and let go of all values."""
        self._abort_all(reason)
        with self._lock:
            self._values.clear()
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)

"""Session of a coordinator at a worker: interpreter, job queue and values."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from mplang_trace import SpanRecorder, now

from mplang_core import BaseType, Mask, MPType, Program
from mplang_core.ext import AbortedError, Failure, RunError, WorkerInterpreter
from mplang_http.comm import HttpCommunicator
from mplang_http.config import Limits
from mplang_http.errors import RequestError
from mplang_http.job import Job
from mplang_http.logs import log_context

NOT_SUBMITTED = ""
"""The program of a job that was cancelled before it was submitted."""

log = logging.getLogger("mplang.http.session")


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Value of a session, with its type."""

    kind: BaseType
    value: Any

    @property
    def size(self) -> int:
        """Size in bytes; 0 if it is unknown."""
        return int(getattr(self.value, "nbytes", 0))


class Session:
    """Session of one coordinator at this worker.

    Args:
        name: name of the session; the names of its runs begin with it.
        comm: communicator of the session.
        owner: name of the coordinator; part of the names of runs on links.
        insecure: whether protocols for debugging may run.
        limits: limits on jobs and values.
        on_end: called with each job that has ended, and again when a job that was cancelled
            while it ran has settled.
    """

    def __init__(
        self,
        name: str,
        comm: HttpCommunicator,
        *,
        owner: str,
        insecure: bool,
        limits: Limits,
        on_end: Callable[[Job], None],
    ) -> None:
        self.name = name
        self.comm = comm
        self.generation = -1
        self.last_seen = time.monotonic()
        self._insecure = insecure
        self._prefix = f"{quote(owner, safe='')}:{name}"
        self._limits = limits
        self._held_bytes = 0
        self._on_end = on_end
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._values: dict[str, StoredValue] = {}
        self._lock = threading.RLock()
        self._thread: ThreadPoolExecutor | None = None
        self._worker: WorkerInterpreter | None = None
        self._recorded: Job | None = None

    def start_generation(self, generation: int) -> None:
        """Start a generation: abort active jobs, and replace the interpreter."""
        with self._lock:
            if generation <= self.generation:
                return
            self.generation = generation
            before = self.jobs()
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"mplang-{self.name[:8]}")
            self._worker = WorkerInterpreter(
                self.comm,
                session=f"{self._prefix}.{generation}",
                insecure=self._insecure,
                timeout=self.comm.timeout,
            )
        self._abort(before, "another generation of the session began")

    # -- jobs

    def submit(
        self, run: str, program: Program, inputs: Sequence[Any], *, record: bool = False
    ) -> Job:
        """Queue a run of a program.

        Args:
            run: name of the run.
            program: the program.
            inputs: its inputs.
            record: whether to record spans; they are kept until the next job is recorded.

        Returns:
            The job.

        Raises:
            RequestError: the run or its inputs are invalid, or there are too many jobs.
        """
        self._check(run, program, inputs)
        with self._lock:
            before = self._jobs.get(run)
            if before is not None and before.program == NOT_SUBMITTED:
                self._on_end(before)
                return before  # cancelled before it was submitted: another party had failed
            if before is not None:
                raise RequestError(409, "replayed", f"there was a run {run!r} before")
            job = self._add_job(Job(run, self._run_key(run), program.digest))
            if record:
                self._start_recording(job)
            thread, worker = self._thread, self._worker
        assert thread is not None
        assert worker is not None
        self.comm.open(self._run_key(run))
        thread.submit(self._execute, worker, job, program, inputs)
        return job

    def _check(self, run: str, program: Program, inputs: Sequence[Any]) -> None:
        if not run.startswith(f"{self.name}-") or "/" in run:
            raise RequestError(403, "forged", f"the runs of this session begin with {self.name}-")
        all_, mine = Mask.all(self.comm.world_size), Mask.of(self.comm.rank)
        if program.mask not in (all_, mine):
            raise RequestError(
                422, "forged", f"the program is for {program.mask}, not {all_} or {mine}"
            )
        taken = program.graph.inputs
        if len(taken) != len(inputs):
            raise RequestError(422, "inputs", f"the program takes {len(taken)} inputs")
        for i, (wanted, value) in enumerate(zip(taken, inputs, strict=True)):
            kind = wanted.type
            assert isinstance(kind, MPType)
            if value is not None and kind.base.mismatch(value):
                raise RequestError(422, "inputs", f"input {i} is no {kind.base}")

    def _add_job(self, job: Job) -> Job:
        while len(self._jobs) >= self._limits.jobs:
            finished = next((run for run, job in self._jobs.items() if job.finished), None)
            if finished is None:
                raise RequestError(
                    429, "busy", f"{len(self._jobs)} jobs of this session have not ended"
                )
            del self._jobs[finished]
        self._jobs[job.run] = job
        return job

    def _execute(
        self, worker: WorkerInterpreter, job: Job, program: Program, inputs: Sequence[Any]
    ) -> None:
        with self._lock:
            if job.finished:
                return
            job.start(worker)
        with log_context(self.name, job):
            log.info("%s begins", program.name)
            try:
                outs = worker.evaluate(program, inputs, job.key, recorder=job.recorder)
            except BaseException as error:
                failure = Failure.public(error)
                log.warning("failed in %s at %s: %s", failure.op, failure.location, failure.text)
                log.debug("why it failed", exc_info=error)
                self._settle(job, op_failed=Failure.in_op(error))
                self.end(job, "failed", error=failure)
            else:
                self._store_results(job, program, outs)
            finally:
                self.comm.close(job.key)
            log.info("%s is %s after %.3f s", program.name, job.state, now() - job.begun)

    def _start_recording(self, job: Job) -> None:
        if self._recorded is not None:
            self._recorded.recorder = None
        job.recorder, self._recorded = SpanRecorder(self.comm.rank, job.run), job

    def _run_key(self, run: str) -> str:
        """Return the name of a run on links, which are shared by all sessions."""
        return f"{self._prefix}:{run}"

    def _store_results(self, job: Job, program: Program, outs: Sequence[Any]) -> None:
        found = {}
        for i, (value, out) in enumerate(zip(outs, program.graph.outputs, strict=True)):
            assert isinstance(out.type, MPType)
            if value is not None:
                found[f"{job.run}.{i}"] = StoredValue(out.type.base, value)
        with self._lock:
            full = None if job.finished else self._store(found)
        self._settle(job, op_failed=full is not None)  # sizes of results may be private
        if full is not None:
            self.end(job, "failed", error=Failure.of(RunError(full)))
        else:
            self.end(job, "done", held=[value is not None for value in outs])

    def _settle(self, job: Job, *, op_failed: bool) -> None:
        """Record that the ops of a job have ended, before its outcome is."""
        with self._lock:
            job.settled, job.op_failed, cancelled = True, op_failed, job.finished
        if cancelled:
            self._on_end(job)

    def end(
        self, job: Job, state: str, held: Sequence[bool] = (), error: Failure | None = None
    ) -> None:
        """Record the outcome of a job; the first outcome wins.

        Args:
            job: the job.
            state: ``done``, ``failed`` or ``cancelled``.
            held: per result whether this party has it.
            error: why the job failed.
        """
        with self._lock:
            if job.finished:
                return
            job.settled |= job.state == "queued"
            job.end(state, held, error)
        self._on_end(job)

    def job(self, run: str) -> Job:
        """Return a job.

        Raises:
            RequestError: there is no such job.
        """
        found = self._jobs.get(run)
        if found is None:
            raise RequestError(404, "unknown-job", f"no job {run[:100]!r} in this session")
        return found

    def jobs(self) -> list[Job]:
        """Return all jobs, in order of submission."""
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, run: str, reason: str) -> Job:
        """Cancel a job at all parties; do nothing if it has ended.

        A job that is submitted after its cancellation does not run.

        Args:
            run: name of the run.
            reason: text for the job's error.

        Returns:
            The job.

        Raises:
            RequestError: the run is not of this session, or there are too many jobs.
        """
        with self._lock:
            if run not in self._jobs and run.startswith(f"{self.name}-"):
                self._add_job(Job(run, self._run_key(run), NOT_SUBMITTED))
        job = self.job(run)
        if not job.finished:
            queued = job.state == "queued"
            op_location = job.op_location()
            error = AbortedError(f"party {self.comm.rank} stopped: {reason}")
            self.end(
                job,
                "cancelled",
                error=replace(
                    Failure.of(error), op=op_location["op"], location=op_location["location"]
                ),
            )
            self.comm.abort(self._run_key(run), reason)
            if queued:  # in a thread, as it waits for the peers
                threading.Thread(
                    target=self.comm.close, args=[self._run_key(run)], daemon=True
                ).start()
        return job

    def _abort(self, jobs: Sequence[Job], reason: str) -> None:
        for job in jobs:
            if not job.finished:
                self.cancel(job.run, reason)

    # -- values

    def _store(self, found: Mapping[str, StoredValue]) -> str | None:
        """Store values, or return why there is no room for them."""
        size = sum(stored.size for stored in found.values())
        limits = self._limits
        if len(self._values) + len(found) > limits.values or self._held_bytes + size > limits.held:
            return (
                f"party {self.comm.rank} keeps {limits.values} values of a session, and "
                f"{limits.held} bytes of them, at most; let go of some first"
            )
        self._values |= found
        self._held_bytes += size
        return None

    def put(self, name: str, stored: StoredValue) -> None:
        """Store a value.

        Args:
            name: name of the value.
            stored: the value.

        Raises:
            RequestError: the name is taken, or the session is full.
        """
        with self._lock:
            if name in self._values or name.startswith(f"{self.name}-"):  # reserved for results
                raise RequestError(409, "taken", f"there is a value {name!r} already")
            full = self._store({name: stored})
        if full is not None:
            raise RequestError(429, "full", full)

    def value(self, name: str) -> StoredValue:
        """Return a value.

        Raises:
            RequestError: there is no such value.
        """
        found = self._values.get(name)
        if found is None:
            raise RequestError(404, "unknown-value", f"no value {name[:100]!r} in this session")
        return found

    def release(self, names: Sequence[str]) -> int:
        """Release values, and return how many there were."""
        with self._lock:
            gone = [stored for name in names if (stored := self._values.pop(name, None))]
            self._held_bytes -= sum(stored.size for stored in gone)
            return len(gone)

    def __len__(self) -> int:
        return len(self._values)

    def close(self, reason: str) -> None:
        """Cancel all jobs and release all values."""
        self._abort(self.jobs(), reason)
        with self._lock:
            self._values.clear()
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)

"""Session of a coordinator at a worker: interpreter, job queue and values."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from mplang_analysis import Followed, Label, own
from mplang_analysis.ext import quoted, shortened
from mplang_http.ext import JobRequest, Stored, needed_natives
from mplang_trace import SpanRecorder, now

from mplang_core import Mask, MPLangError, MPType, Program
from mplang_core.ext import (
    AbortedError,
    DamagedProcessError,
    Failure,
    ObservedWorker,
    RunError,
    Traffic,
    kept_outputs,
    participants_of,
)
from mplang_worker.base.config import Limits
from mplang_worker.base.digests import sha256
from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import log_context
from mplang_worker.base.step_clock import StepClock
from mplang_worker.engine.inputs import RunInputs
from mplang_worker.engine.job import Job
from mplang_worker.engine.labels import SessionLabels
from mplang_worker.engine.run_storage import RunStorage
from mplang_worker.engine.values import SessionValues
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.mpc.services import MpcServices
from mplang_worker.wire.opening import NO_LOGS, Logs, Opening, shared_name, shown_program
from mplang_worker.wire.stored_value import StoredValue

NOT_SUBMITTED = ""
"""The program of a job that was cancelled before it was submitted."""

log = logging.getLogger("mplang.http.session")


class PartyWorker(ObservedWorker):
    """Interpreter of a session, which records a failure before any other party is told of it.

    Args:
        comm: communicator of the session.
        on_failure: called with the name of a run on links, and why it fails here.
        mpc: the native services of the session.
        **options: the others of :class:`ObservedWorker`.
    """

    def __init__(
        self,
        comm: HttpCommunicator,
        *,
        on_failure: Callable[[str, BaseException], None],
        mpc: MpcServices,
        **options: Any,
    ) -> None:
        super().__init__(comm, **options)
        self.natives = mpc.by_name
        self._on_failure, self._mpc = on_failure, mpc

    def traffic(self) -> dict[int, Traffic]:
        """Return the traffic with each other party by rank, that of the MPC processes included."""
        apart = self._mpc.traffic()
        return {rank: link + apart.get(rank, Traffic()) for rank, link in super().traffic().items()}

    def abort(self, run: str, error: BaseException) -> None:
        """Abort a run at the other parties, as it failed here; they learn of the op and its line.

        Args:
            run: the run.
            error: the failure.
        """
        self._on_failure(run, error)
        super().abort(run, error)


class Session:
    """Session of one coordinator at this worker.

    Args:
        name: name of the session; the names of its runs begin with it.
        comm: communicator of the session.
        owner: name of the coordinator; part of the names of runs on links.
        insecure: whether protocols for debugging may run.
        limits: limits on jobs and values.
        on_end: called with each job that has ended, and again when a job that was cancelled
            while it ran has settled, and when the session is closed if an op of it has failed.
        on_damage: called once it was told that a job has harmed the memory of this process.
        data: the data sets of this party, for its coordinator.
        gated: whether the gate of this party is asked before a run begins.
        observable: whether its coordinator is told how long runs take; else those whose duration
            depends on private data without a bound are told of at the steps of a clock.
        mpc: the native services of the session.

    Attributes:
        values: its values.
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
        on_damage: Callable[[], None] = lambda: None,
        data: Any = None,
        gated: bool = False,
        observable: bool = True,
        mpc: MpcServices,
    ) -> None:
        self.name = name
        self.comm = comm
        self.generation = -1
        self.last_seen = time.monotonic()
        self.values = SessionValues(name, f"party {comm.rank}", limits)
        self._insecure = insecure
        self._data = data
        self._gated, self._observable = gated, observable
        self._mpc = mpc
        comm.on_failure = mpc.abort
        self._prefix = shared_name(owner, name)
        self._settings: dict[str, Any] = {}
        self._labels = SessionLabels()
        self._last_number = -1
        self._limits = limits
        self._on_end, self._on_damage = on_end, on_damage
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.RLock()
        self._thread: ThreadPoolExecutor | None = None
        self._worker: ObservedWorker | None = None
        self._recorded: Job | None = None

    def start_generation(self, generation: int, settings: Mapping[str, Any]) -> None:
        """Start a generation: abort active jobs, and replace the interpreter.

        Args:
            generation: its number.
            settings: what all parties must have alike; part of the keys of messages.
        """
        with self._lock:
            if generation <= self.generation:
                return
            self.generation, self._settings = generation, dict(settings)
            before = self.jobs()
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"mplang-{self.name[:8]}")
            self._worker = PartyWorker(
                self.comm,
                on_failure=self._op_failed,
                mpc=self._mpc,
                session=f"{self._prefix[:-1]}.{generation}",
                insecure=self._insecure,
                timeout=self.comm.timeout,
                data=self._data,
            )
        self._abort(before, "another generation of the session began")

    # -- jobs

    def submit(self, request: JobRequest, program: Program, logs: Logs = NO_LOGS) -> Job:
        """Queue a run of a program.

        Args:
            request: the run, its inputs and its parties.
            program: the program.
            logs: what this party tells of its log, and knows of its peers' logs.

        Returns:
            The job.

        Raises:
            RequestError: the run or its inputs are invalid, or there are too many jobs.
        """
        run = request.run
        number = self._number(run)
        inputs = RunInputs(request, program, self.comm.rank, self.values, self._jobs.get)
        self._check(request, program)
        inputs.check()
        opening = self._opening(request, program, logs)
        with self._lock:
            before = self._jobs.get(run)
            if before is not None and before.program == NOT_SUBMITTED:
                self._on_end(before)
                return before  # cancelled before it was submitted: another party had failed
            if before is not None or number <= self._last_number:
                raise RequestError(409, "replayed", f"there was {run!r} before, or a later run")
            self._last_number = number
            job = self._add_job(Job(run, opening.key, program.digest))
            if request.record:
                self._start_recording(job)
            thread, worker = self._thread, self._worker
        assert thread is not None
        assert worker is not None
        try:
            self.comm.open(job.key, opening)
        except MPLangError as error:
            self._settle(job, op_failed=False)
            self.end(job, "failed", error=Failure.public(error))
        else:
            thread.submit(self._execute, worker, job, opening, program, inputs, request)
        return job

    def _opening(self, request: JobRequest, program: Program, logs: Logs) -> Opening:
        """Return what this worker was shown of a run."""
        return Opening(
            run=f"{self._prefix}{request.run}",
            program=shown_program(program.digest, request.program),
            parties=sha256([request.step, request.parties, self.comm.certificates()]),
            inputs=sha256(request.inputs),
            settings=sha256([self.generation, self._settings]),
            logs=logs,
        )

    def _check(self, request: JobRequest, program: Program) -> None:
        world = Mask.all(self.comm.world_size)
        if program.mask != world:
            raise RequestError(
                422,
                "forged",
                f"a program is sent whole, for all parties: {world}; this one is for "
                f"{program.mask}",
            )
        fit = request.parties == list(_parties_of(program, request.step))
        if not fit or self.comm.rank not in request.parties:
            raise RequestError(
                422,
                "forged",
                f"parties {request.parties} cannot run it: all parties do, or of a step, which is "
                "one op, those that take part in it",
            )

    def _number(self, run: str) -> int:
        """Return the number of a run, which grows within a session.

        Raises:
            RequestError: it is not a name of a run of this session.
        """
        name, _, number = run.rpartition("-")
        if name != self.name or not number.isdecimal():
            raise RequestError(
                403, "forged", f"the runs of this session are {self.name}-0, {self.name}-1, …"
            )
        return int(number)

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
        self,
        worker: ObservedWorker,
        job: Job,
        opening: Opening,
        program: Program,
        inputs: RunInputs,
        request: JobRequest,
    ) -> None:
        with self._lock:
            if job.finished:
                return
            job.start(worker)
        self.comm.begin(job.key)
        with log_context(self.name, job):
            name = quoted(program.name)
            log.info("%s begins, program %s", name, program.digest)
            storage = RunStorage(program, self.comm, self._data)

            def leave(*, failed: bool) -> None:
                storage.end()
                self._mpc.end(job.key, failed=failed)
                self.comm.close(job.key)

            try:
                inputs.resolve()
                labels = self._followed(job, opening, program, inputs, request, storage)
                values = [None if each is None else each.value for each in inputs.values]
                public = [i for i, x in enumerate(request.inputs) if not isinstance(x, Stored)]
                outs = worker.evaluate(
                    program, values, job.key, recorder=job.recorder, public=public
                )
                self._mpc.settle(job.key)
                self._mpc.end(job.key, failed=False)  # its spans are there before the end is told
            except BaseException as error:
                failure = job.failure = Failure.public(error)
                counts = self._counts(job.key, error)
                if not Failure.in_op(error):
                    self.comm.abort(job.key, failure.text)
                at = (
                    f" in {failure.op} at {shortened(failure.location or '')}" if failure.op else ""
                )
                ran = now() - job.begun
                log.warning("failed%s: %s; %s ran for %.3f s", at, failure.text, name, ran)
                log.debug("why it failed", exc_info=error)
                job.wait_for_step(functools.partial(leave, failed=True))
                self._mpc.end(
                    job.key, failed=True
                )  # its process may end itself, and is not asked before
                self._settle(job, op_failed=counts)
                self.end(job, "failed", error=failure)
                if isinstance(error, DamagedProcessError):
                    self._on_damage()
            else:
                ran = now() - job.begun
                job.wait_for_step(functools.partial(leave, failed=job.finished))
                self._store_results(job, program, outs, labels)
            finally:
                leave(failed=job.state != "done")
                self.comm.finish()
            if job.state != "failed":  # that has been logged
                log.info("%s is %s after %.3f s", name, job.state, ran)

    def _start_recording(self, job: Job) -> None:
        if self._recorded is not None:
            self._recorded.recorder = None
        job.recorder, self._recorded = SpanRecorder(self.comm.rank, job.run), job

    def _followed(
        self,
        job: Job,
        opening: Opening,
        program: Program,
        inputs: RunInputs,
        request: JobRequest,
        storage: RunStorage,
    ) -> Sequence[Mapping[int, Label]]:
        """Wait until all parties have opened the run, and return the labels of its outputs.

        A run of which the peers were told is followed even if it fails here before it begins, as
        another party may have run it.

        Raises:
            AdmissionError: a party was shown another run, the program is too involved, or what it
                loads is not there.
            CommError: a party does not open it, or its labels are malformed.
            RunError: what the runs before it were to give is not here.
        """
        labels = inputs.labels(self._labels)
        opening = opening.told(self._labels.history, labels, storage.told())
        openings = {self.comm.rank: opening}
        try:
            inputs.require()
            self._open(job, opening, program, request)
            found = openings | self.comm.openings(job.key, request.parties)
            labels_of_inputs = self._labels.of_inputs(found, request)
            storage.resolve(found)
        except MPLangError:
            labels_of_inputs = self._labels.of_inputs(openings, request)
            self._follow(job, openings, labels_of_inputs, program, request, storage)
            if self._gated:
                self._data.gate.missed(job.run, openings)
            raise
        followed = self._follow(job, found, labels_of_inputs, program, request, storage)
        if self._gated:
            self._pass_gate(job, found)
        self._log_rows(program, followed)
        self._start_clock(job, followed, storage)
        storage.begin(job.run, followed)
        return followed.outputs

    def _pass_gate(self, job: Job, openings: Mapping[int, Opening]) -> None:
        """Ask the gate whether a run may begin, and tell the peers before the first message.

        What the run uses up is used once the gates of all parties permit it.

        Raises:
            AdmissionError: it may not.
            RunError: a peer refuses it, or has failed.
        """
        head = self._data.gate.begin(job.run, openings)
        if head is None:
            self.comm.permit(job.key)
            peers = [rank for rank, each in openings.items() if rank != self.comm.rank]
            self.comm.await_permits(job.key, [r for r in peers if openings[r].logs.gated])
            head = self._data.gate.commit(job.run)
        self.comm.permit(job.key, head or b"")

    def run_of(self, shared: str) -> str:
        """Return the name of a run here, by its name at all parties."""
        return shared.removeprefix(self._prefix)

    def _start_clock(self, job: Job, followed: Followed, storage: RunStorage) -> None:
        """Report the end of a run at clock ticks if its duration depends on private data."""
        timed = any(row.what == "duration" for row in followed.disclosure.rows)
        if timed and not self._observable:
            self._data.start_clock(job.run, storage.changes)
            job.clock = StepClock()

    def _open(self, job: Job, opening: Opening, program: Program, request: JobRequest) -> None:
        """Announce to the peers that this party is in the run, once its native services are.

        Raises:
            CommError: an MPC process has ended; the peers are told of the run all the same.
        """
        try:
            self._mpc.begin(job.key, request.parties, job.recorder, needed_natives(program))
        finally:
            self.comm.announce(job.key, opening)

    def _follow(
        self,
        job: Job,
        openings: Mapping[int, Opening],
        labels: Sequence[Mapping[int, Label]],
        program: Program,
        request: JobRequest,
        storage: RunStorage,
    ) -> Followed:
        """Return what the run does with labels."""
        return self._labels.follow(program, request, openings, labels, storage.labels, job.key)

    def _log_rows(self, program: Program, followed: Followed) -> None:
        """Log which rows of a run that begins disclose this party's data."""
        rows = followed.disclosure.of(self.comm.rank)
        log.info("%s discloses data of this party in %d rows", quoted(program.name), len(rows))
        for row in rows:
            log.debug("%s", row)

    def _store_results(
        self, job: Job, program: Program, outs: Sequence[Any], labels: Sequence[Mapping[int, Label]]
    ) -> None:
        found, kept, rank = {}, kept_outputs(program.graph), self.comm.rank
        for i, (value, out) in enumerate(zip(outs, program.graph.outputs, strict=True)):
            assert isinstance(out.type, MPType)
            if value is not None:
                label = labels[i].get(rank) or own(rank, "unknown")
                found[f"{job.run}.{i}"] = StoredValue(out.type.base, value, label, i not in kept)
        with self._lock:
            full = None if job.finished else self.values.add(found)
        self._settle(job, op_failed=full is not None)  # sizes of results may be private
        if full is not None:
            self.end(job, "failed", error=Failure.of(RunError(full, code="R019")))
        else:
            self.end(job, "done", held=[value is not None for value in outs])

    def _op_failed(self, key: str, error: BaseException) -> None:
        """Record whether an op of a run has failed here, before anybody else can know of it."""
        with self._lock:
            for job in self._jobs.values():
                if job.key == key:
                    job.op_failed |= self._counts(key, error)

    def _counts(self, key: str, error: BaseException) -> bool:
        """Return whether a failure may tell of private data, so that the run counts as failed."""
        return Failure.in_op(error) or self._mpc.ended_in(key)

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
                self._add_job(Job(run, "", NOT_SUBMITTED))
        job = self.job(run)
        if not job.finished:
            queued = job.state == "queued"
            op_location = job.op_location()
            if job.failure is not None:  # it has left its op
                op_location = {"op": job.failure.op, "location": job.failure.location}
            error = AbortedError(f"party {self.comm.rank} stopped: {reason}")
            self.end(
                job,
                "cancelled",
                error=replace(
                    Failure.of(error), op=op_location["op"], location=op_location["location"]
                ),
            )
            if job.key:
                self.comm.abort(job.key, reason)
            if queued and job.key:  # in a thread, as it waits for the peers
                threading.Thread(target=self.comm.close, args=[job.key], daemon=True).start()
        return job

    def _abort(self, jobs: Sequence[Job], reason: str) -> None:
        for job in jobs:
            if not job.finished:
                self.cancel(job.run, reason)

    def close(self, reason: str) -> None:
        """Cancel all jobs and release all values; tell of each in which an op has failed.

        The process may end before their threads do so.
        """
        self._abort(self.jobs(), reason)
        for job in self.jobs():
            if job.op_failed:
                job.settled = True
                self._on_end(job)
        with self._lock:
            self.values.clear()
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)


def _parties_of(program: Program, step: bool) -> Mask:
    """Return who runs a program: all parties, or those that take part in the op of a step."""
    ops = program.graph.ops
    if not step:
        return program.mask
    return participants_of(ops[0], program.mask) if len(ops) == 1 else Mask()

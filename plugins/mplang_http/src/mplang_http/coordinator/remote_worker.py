"""A worker as its coordinator sees it: its session, its jobs, and the values that it holds."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec
from mplang_trace import now

from mplang_core import BaseType, Mask, MPLangError, MPType, Program, TensorType
from mplang_core.ext import AbortedError, HostVar, Recorder, RunError, Value, WireError, type_of
from mplang_http.coordinator.client import LostWorkerError, RefusedError, WorkerClient
from mplang_http.coordinator.compatibility import WorkerFacts
from mplang_http.coordinator.job_monitor import JobMonitor, clock_offset
from mplang_http.coordinator.progress_bars import ProgressBars
from mplang_http.coordinator.receipts import Receipts, receipt_now
from mplang_http.coordinator.references import Literal, Ref
from mplang_http.coordinator.refusals import error_of
from mplang_http.wire.protocols import PUBLIC_NAME
from mplang_http.wire.requests import Input, JobRequest, Stored, Uploaded
from mplang_http.wire.spans import MAX_SPANS, read_spans
from mplang_http.wire.values import frame_head, pack, split_frame

POLL_INTERVAL = 1.0  # seconds that a worker waits for the end of a job before it responds
START_TIMEOUT = 30.0  # seconds that a worker has to describe itself and to link to its peers
MIN_RETRY_AFTER = 0.1  # seconds that a worker is not asked again, whatever it says
MAX_RETRY_AFTER = 10.0  # seconds after which a worker is asked again
QUEUE_TIMEOUT = 600.0  # seconds that a worker may say that it is not yet the turn of a session
MAX_RELEASED = 1000  # names of values in one request

Status: TypeAlias = Mapping[str, Any]
"""Status of a job, as its worker tells it."""

T = TypeVar("T")

log = logging.getLogger("mplang.http.host")


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a program, as all its parties get it.

    Attributes:
        run: name of the run.
        generation: generation of the session in which it begins.
        program: the program.
        digest: SHA-256 of the program's bytes, in hex.
        data: the program's bytes.
        texts: SHA-256 of functions and texts of its source lines; ``None`` for a step.
        inputs: its inputs.
        parties: ranks that run it.
        step: whether the program is one op of standard mode or of an eager call.
    """

    run: str
    generation: int
    program: Program
    digest: str
    data: bytes
    texts: str | None
    inputs: Sequence[HostVar]
    parties: Mask
    step: bool


class RemoteWorker:
    """Worker of one party of a session.

    It has no reference to its driver, so that the driver can be garbage-collected.

    Args:
        rank: rank of the party.
        client: client of the worker.
        session: name of the session.
        monitor: is told what the worker says of its jobs.
        bars: progress bars for long uploads and downloads.
        receipts: keeps what the worker's gate signs of its log.

    Attributes:
        rank: rank of the party.
        name: its name.
        address: address of the worker.
        client: client for requests that are none of these.
        linked: whether its processes are linked to those of the other parties, as it said last.
    """

    def __init__(
        self,
        rank: int,
        client: WorkerClient,
        session: str,
        monitor: JobMonitor,
        bars: ProgressBars,
        receipts: Receipts,
    ) -> None:
        self.rank, self.name, self.address = rank, client.name, client.address
        self.client, self._monitor, self._bars = client, monitor, bars
        self._receipts = receipts
        self._gate = ""  # its name, and the public key of its gate: it may claim another one's
        self._path = ("v1", "sessions", session)
        self._dropped: deque[str] = deque()  # names of values to release
        self._given_up: set[str] = set()
        self.linked = False

    @property
    def has_gate(self) -> bool:
        """Whether its gate signs what it has on record of each run."""
        return bool(self._gate)

    # -- the session

    def facts(self) -> WorkerFacts:
        """Return what it tells of itself."""
        found = self.client.request("GET", "facts", patience=START_TIMEOUT)
        return WorkerFacts.read(self.name, found)

    def open(self, request: Mapping[str, Any]) -> Any:
        """Open the session, or start its next generation; wait while others are before it.

        Args:
            request: the SessionRequest, without the rank.

        Returns:
            The credentials of this party's engine, and of its MPC processes, by native service.
        """
        body = json.dumps({**request, "rank": self.rank}).encode()
        until = time.monotonic() + QUEUE_TIMEOUT
        while True:
            try:
                found = self.client.request("PUT", *self._path, body=[body], patience=START_TIMEOUT)
                gate = str(found["credential"].get("gate", ""))
                self._gate = gate and f"{self.name} {gate}"
                return found["credential"], dict(found["native"].items())
            except RefusedError as error:
                if error.reason != "queued" or self.client.is_closed or time.monotonic() > until:
                    raise
                log.info("%s", error)
                time.sleep(min(max(error.retry_after or 0.0, MIN_RETRY_AFTER), MAX_RETRY_AFTER))

    def link(self, request: Mapping[str, Any]) -> None:
        """Link it to its peers.

        Args:
            request: the LinkRequest.
        """
        receipt = self._receipts.latest(self._gate) if self._gate else ""
        body = [json.dumps({**request, "receipt": receipt}).encode()]
        self.client.request("POST", *self._path, "links", body=body, patience=START_TIMEOUT)
        self.linked = True

    def pass_on(self, approval: bytes) -> bool:
        """Pass an approval on; return whether it counts there."""
        found = self.client.request("POST", *self._path, "approvals", body=[approval])["counts"]
        return bool(found)

    def renew(self) -> None:
        """Renew the lease of the session, and release dropped values."""
        names = self._drain()
        try:
            body = [json.dumps(names).encode()]
            found = self.client.request("POST", *self._path, "release", body=body)
            self.linked = found.get("linked", True) is True
        except RefusedError as error:
            if error.status == 429:  # its engine is busy
                self._dropped.extend(names)
        except LostWorkerError:
            self._dropped.extend(names)  # it may be slow only, so release them next time
        except RunError:
            pass  # the session has ended at the worker

    def _drain(self) -> list[str]:
        """Remove and return names of dropped values; other threads append to them."""
        found: list[str] = []
        with contextlib.suppress(IndexError):
            while len(found) < MAX_RELEASED:
                found.append(self._dropped.popleft())
        return found

    def end_session(self) -> None:
        """End the session, if the worker responds."""
        with contextlib.suppress(RunError):
            self.client.request("DELETE", *self._path)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    # -- jobs

    def run(self, job: Job, recorder: Recorder | None) -> list[Ref | None]:
        """Run a job, and wait for its end.

        Args:
            job: the job.
            recorder: takes its spans; ``None`` if nothing is recorded.

        Returns:
            One reference per output, ``None`` where this party holds none.

        Raises:
            MPLangError: the job failed, or was refused.
            AbortedError: it was given up.
            LostWorkerError: the worker does not respond.
        """
        body = self.request(job, record=recorder is not None)
        sent, status = self._begin(job, body, POLL_INTERVAL)
        status = self.await_end(job, status)
        if recorder is not None and status.get("observable") is not False:
            self._fetch_spans(recorder, status, sent)
        if status["state"] != "done":
            raise error_of(self.name, status["error"])
        return self._results(job, status["held"])

    def request(self, job: Job, *, record: bool = False, after: str | None = None) -> bytes:
        """Return the request for a job; large literals are uploaded, and dropped values released.

        Args:
            job: the job.
            record: whether its spans are recorded.
            after: name of the run that it follows, if its end was not awaited.
        """
        request = JobRequest(
            job.run, job.digest, job.generation, [self._input(each) for each in job.inputs],
            list(job.parties), self._drain(), record, job.step, after, job.texts,
        )  # fmt: skip
        return msgspec.msgpack.encode(request)

    def queue(self, job: Job, body: bytes) -> Status:
        """Queue a job, and return its status once the worker's engine has taken it.

        Args:
            job: the job.
            body: its request.

        Raises:
            MPLangError: it was refused.
            AbortedError: it was given up.
            LostWorkerError: the worker does not respond.
        """
        _, status = self._begin(job, body, 0.0)
        while not status.get("program"):  # of an engine that is busy: the front answers for it
            status = self._poll(job)
        return status

    def finish(self, job: Job, status: Status, expected: Sequence[Ref | None]) -> None:
        """Wait for the end of a job that was queued.

        Args:
            job: the job.
            status: its last status.
            expected: its results, as their types say.

        Raises:
            MPLangError: the job failed.
            AbortedError: it was given up.
            LostWorkerError: the worker does not respond.
            RunError: the party holds other results.
        """
        status = self.await_end(job, status)
        if status["state"] != "done":
            raise error_of(self.name, status["error"])
        if list(status["held"]) != [each is not None for each in expected]:
            raise RunError(
                f"worker {self.name} holds other results than their types say", code="R018"
            )

    def expected(self, job: Job) -> list[Ref | None]:
        """Return one reference per output that the party holds by its type, ``None`` for others."""
        masks = (_type_of(out).pmask or Mask() for out in job.program.graph.outputs)
        return self._results(job, [self.rank in mask for mask in masks])

    def await_end(self, job: Job, status: Status) -> Status:
        """Wait for the end of a job; return its final status.

        Args:
            job: the job.
            status: its last status.
        """
        while status["state"] in ("queued", "running"):
            status = self._poll(job)
        return status

    def _poll(self, job: Job) -> Status:
        if job.run in self._given_up:
            raise AbortedError(f"party {self.rank} did not end in time")
        status: Status = self.client.request(
            "GET", *self._path, "jobs", job.run, wait=POLL_INTERVAL
        )
        self._update(job, status)
        return status

    def _update(self, job: Job, status: Mapping[str, object]) -> None:
        """Take in the status of a job, and the receipt of its run."""
        self._monitor.update(self.rank, status)
        text = status.get("receipt")
        if self._gate and isinstance(text, str) and text:
            kept = receipt_now(self.name, self.address, job.run, text)
            self._receipts.keep(self._gate, kept)

    def _begin(self, job: Job, body: bytes, wait: float) -> tuple[float, Status]:
        """Submit a job, and its program if the worker has not got it.

        Returns:
            When it was sent, and its status once it has ended, or after ``wait`` seconds.
        """
        submit = functools.partial(
            self.client.request, "POST", *self._path, "jobs", body=[body], wait=wait, run=job.run
        )
        sent = now()
        try:
            status = submit()
        except RefusedError as error:
            if error.reason != "unknown-program":
                raise
            self.client.request("PUT", *self._path, "programs", job.digest, body=[job.data])
            sent = now()
            status = submit()
        self._update(job, status)
        return sent, status

    def _fetch_spans(self, recorder: Recorder, status: Status, sent: float) -> None:
        """Download the spans of a run into a recorder; ignore errors."""
        heard = now()
        path = (*self._path, "jobs", recorder.run, "spans")
        with contextlib.suppress(RunError, WireError):
            found = read_spans(self.client.fetch(*path, max_size=MAX_SPANS).data)
            offset = clock_offset(sent, status["begun"], status["now"], heard)
            recorder.take(found.spans, found.dropped, offset)

    def _results(self, job: Job, held: Sequence[bool]) -> list[Ref | None]:
        found: list[Ref | None] = []
        for i, (is_here, out) in enumerate(zip(held, job.program.graph.outputs, strict=True)):
            ref = Ref(f"{job.run}.{i}", _type_of(out).base, self._dropped) if is_here else None
            found.append(ref)
        return found

    def _input(self, var: HostVar) -> Input:
        """Return an input for a request; a large literal is uploaded before."""
        literal = var.values[self.rank]
        if not isinstance(literal, Literal):
            return Stored([None if each is None else each.name for each in var.values])
        if isinstance(literal.input, Uploaded) and self.rank not in literal.refs:
            literal.refs[self.rank] = self._upload(literal.input.digest, literal.array)
        return literal.input

    def cancel(self, runs: Sequence[str], reason: str) -> None:
        """Cancel runs, if the worker responds.

        Args:
            runs: names of the runs.
            reason: text for their errors.
        """
        with contextlib.suppress(LostWorkerError):
            for run in runs:
                with contextlib.suppress(RefusedError):
                    self.client.request("DELETE", *self._path, "jobs", run, reason=reason)

    def give_up(self, run: str) -> None:
        """Wait for the end of a run no more."""
        self._given_up.add(run)

    # -- values

    def put(self, name: str, value: Any) -> Ref:
        """Upload a value.

        Args:
            name: its name at the worker.
            value: array, table, or value of a plugin's type.
        """
        self._send(value, "values", name)
        return Ref(name, type_of(value), self._dropped)

    def _upload(self, digest: str, array: Any) -> Ref:
        """Upload a public input."""
        self._send(array, "inputs", digest)
        return Ref(PUBLIC_NAME + digest, type_of(array), self._dropped)

    def _send(self, value: Any, *place: str) -> None:
        head, buffers = pack(value)
        body, size = [frame_head(head), *buffers], sum(map(len, buffers))
        with self._bars.track(f"put to {self.name}", size) as on_progress:
            self.client.request("PUT", *self._path, *place, body=body, on_progress=on_progress)

    def fetch(self, ref: Ref) -> Any:
        """Download a value."""
        size = _byte_size(ref.kind)
        with self._bars.track(f"fetch from {self.name}", size) as on_progress:
            data = self.client.fetch(*self._path, "values", ref.name, on_progress=on_progress)
        return split_frame(data.data).value(ref.kind)


def call_worker(action: Callable[[RemoteWorker], T], worker: RemoteWorker) -> T:
    """Call a worker, and turn a malformed response into a RunError.

    Args:
        action: what is called with it.
        worker: the worker.

    Returns:
        What the action returns.

    Raises:
        RunError: the worker's response is invalid.
    """
    try:
        return action(worker)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, MPLangError):
            raise
        raise RunError(
            f"{worker.name} at {worker.address} returned an invalid response; is it an "
            "mplang worker?",
            code="R018",
        ) from error


def _type_of(value: Value) -> MPType:
    assert isinstance(value.type, MPType)
    return value.type


def _byte_size(kind: BaseType) -> int | None:
    """Return the size in bytes of a type's values; ``None`` if it is unknown."""
    if not isinstance(kind, TensorType):
        return None
    return math.prod(kind.shape) * kind.dtype.numpy.itemsize

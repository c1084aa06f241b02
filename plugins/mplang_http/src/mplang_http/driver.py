"""Driver of the HTTP backend: the host that runs programs on remote workers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import itertools
import json
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from mplang_analysis import Followed, Memory, StorageUse, remember, storage_of
from mplang_simulator import Failure, ObservedHost, PartyState, Recorder, outcome_of
from mplang_trace import now

from mplang_core import BaseType, ClusterSpec, Mask, MPLangError, MPType, Program, TensorType
from mplang_core.ext import (
    AbortedError,
    CommError,
    ConfigError,
    HostVar,
    Mode,
    PartyError,
    RunError,
    WireError,
    frozen,
    to_bytes,
    type_of,
)
from mplang_http.client import LostWorkerError, RefusedError, WorkerClient
from mplang_http.compatibility import (
    WorkerFacts,
    check_parties,
    check_plugins,
    known_data,
    stored_labels,
)
from mplang_http.config import TlsFiles
from mplang_http.failure_report import abort_reason, party_locations, wait_for_cause
from mplang_http.job_monitor import JobMonitor, clock_offset
from mplang_http.lease import LeaseRenewer, drain
from mplang_http.plugin_versions import compatible
from mplang_http.progress_bars import ProgressBars
from mplang_http.references import Literal, Ref
from mplang_http.requests import Input, JobRequest, Stored, Uploaded
from mplang_http.spans import MAX_SPANS, read_spans
from mplang_http.steps import step_refusal
from mplang_http.stored_value import PUBLIC_NAME
from mplang_http.tls import client_context
from mplang_http.values import frame_head, pack, split_frame
from mplang_http.worker_info import versions

POLL_INTERVAL = 1.0  # seconds that a worker waits for the end of a job before it responds
START_TIMEOUT = 30.0  # seconds that a worker has to describe itself and to link to its peers


T = TypeVar("T")


class SimpHttpDriver(ObservedHost):
    """Host that runs programs on workers, over HTTP.

    Args:
        cluster_spec: the parties; each node has an address, unless ``addresses`` gives them.
        addresses: addresses of the workers, by rank.
        mode: see :class:`mplang_core.simp.SimpHost`.
        tls: this coordinator's certificate, key and authority; ``"certs/host"`` stands for
            the files that mplang keygen makes.
        timeout: seconds that a party waits for a message; the workers' limit by default.
        patience: seconds without a sign of life of a worker's front after which it is lost. A
            kernel may take as long as the worker's limit for jobs allows.
        progress: whether to show progress bars for long uploads and downloads; ``None`` for if
            stderr is a terminal.
        approvals: files of ``mplang approve``, which are passed on to the parties.

    Raises:
        ConfigError: a node has no address, ``tls`` is missing, settings of the parties differ, or
            an approval cannot be read or counts at none of them.
        PartyError: a worker does not respond, or responds with an error.

    Example::

        with mp.connect("http", mp.ClusterSpec.from_yaml("cluster.yaml")) as host:
            print(mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7))))
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        *,
        addresses: Sequence[str] | None = None,
        mode: Mode = "launch",
        tls: TlsFiles | Mapping[str, str] | str | None = None,
        timeout: float | None = None,
        patience: float = 3.0,
        progress: bool | None = None,
        approvals: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._approvals = [_read_approval(path) for path in approvals]
        self._workers = _worker_addresses(cluster_spec, addresses)
        files = TlsFiles.of(tls)
        context = client_context(files, "http/1.1") if files is not None else None
        self._clients = [
            WorkerClient(name, address, context, patience, self.session)
            for name, address in self._workers
        ]
        self._timeout = timeout
        self._patience = patience
        self._progress_bars = ProgressBars(progress)
        self._memory = Memory()
        self._to_follow: Callable[[], Followed] | None = None  # once the workers have the run
        self._following: list[Future[Followed]] = []  # while the workers run
        self._generation = 0
        self._opened = False
        self._closed = False
        self._run_lock = threading.Lock()
        self._dropped: list[deque[str]] = [deque() for _ in self._clients]
        self._programs: weakref.WeakKeyDictionary[Program, tuple[str, bytes]]
        self._programs = weakref.WeakKeyDictionary()
        self._puts = itertools.count()
        self._cancelled: set[str] = set()
        self._facts: list[WorkerFacts] = []
        self._checked: weakref.WeakSet[Program] = weakref.WeakSet()  # whose plugins all have
        self._is_step = False  # whether the active run is a step
        self._monitor = JobMonitor(self.world_size)
        # the name of the run, and its futures by rank
        self._active_run: tuple[str, dict[int, Future[list[Any]]]] | None = None
        self._lease = LeaseRenewer(self.session, self._clients, self._dropped)
        weakref.finalize(self, self._lease.stop)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # -- the session

    def _open(self) -> None:
        """Open the session at all workers, or start its next generation.

        Raises:
            PartyError: a worker does not respond, or responds with an error.
            ConfigError: settings of the parties differ; with a table.
        """
        self._know_facts()
        check_parties(self._facts)
        self._checked = weakref.WeakSet()
        request = {
            "parties": [{"name": name, "address": address} for name, address in self._workers],
            "versions": versions(),
            "compatible": compatible(),
            "timeout": self._timeout,
        }
        path = ("v1", "sessions", self.session)

        def open_at(rank: int) -> Any:
            body = json.dumps({**request, "rank": rank}).encode()
            found = self._clients[rank].request("PUT", *path, body=[body], patience=START_TIMEOUT)
            return found["credential"]

        linked = {"credentials": self._call_all(open_at), "generation": self._generation}
        body = json.dumps(linked).encode()
        self._call_all(
            lambda rank: self._clients[rank].request(
                "POST", *path, "links", body=[body], patience=START_TIMEOUT
            )
        )
        for name, data in self._approvals:
            self._pass_on(name, data)
        self._opened = True

    def _pass_on(self, name: str, data: bytes) -> None:
        """Pass an approval on to all workers.

        Raises:
            ConfigError: it counts at none of them.
        """
        path = ("v1", "sessions", self.session, "approvals")
        found = self._call_all(
            lambda rank: self._clients[rank].request("POST", *path, body=[data])["counts"]
        )
        if not any(found):
            raise ConfigError(
                f"approval {name} counts at no party: it is of none of them, or too few have "
                "signed it whose keys they list"
            )

    def _know_facts(self) -> None:
        self._facts = self._call_all(self._fetch_facts)
        self.catalogue = known_data(self._facts)

    def _know_stored(self, uses: Sequence[StorageUse]) -> None:
        """Learn what is stored after a run that has stored or removed something."""
        if any(use.action != "load" for use in uses):
            self._know_facts()

    def refresh(self) -> None:
        """Learn anew which data sets may be read, and what is stored, also by other hosts.

        Raises:
            PartyError: a worker does not respond.
        """
        with self._exclusive():
            self._know_facts()

    def _fetch_facts(self, rank: int) -> WorkerFacts:
        facts = self._clients[rank].request("GET", "facts", patience=START_TIMEOUT)
        return WorkerFacts.read(self._workers[rank][0], facts)

    def _call_all(self, action: Callable[[int], Any]) -> list[Any]:
        """Call all workers in parallel; raise the first failures."""
        futures = [
            self._lease.pool.submit(self._call, action, rank) for rank in range(self.world_size)
        ]
        concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        ended = [(rank, future) for rank, future in enumerate(futures) if future.done()]
        failures = [(rank, e) for rank, future in ended if (e := future.exception()) is not None]
        if failures:
            raise self._explain(failures)
        return [future.result() for future in futures]

    def _call(self, action: Callable[..., T], rank: int, *args: Any) -> T:
        """Call a worker, and turn a malformed response into a RunError."""
        try:
            return action(rank, *args)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, MPLangError):
                raise
            name, address = self._workers[rank]
            raise RunError(f"{name} at {address} answers as no worker does") from error

    def submit(
        self, program: Program, args: Sequence[HostVar], step: Mask | None = None
    ) -> list[HostVar]:
        """Run a program; runs of several threads are serialized.

        Args:
            program: the program.
            args: its inputs.
            step: of a program of one op the parties that take part in it; workers in production
                do not take it.

        Returns:
            The outputs of the program.

        Raises:
            AdmissionError: a worker is in production; names it, and the op's line.
            ConfigError: a worker lacks a plugin of the program.
            PartyError: a party failed.
            RunError: the host is closed.
        """
        with self._exclusive():
            in_production = [each.name for each in self._facts if each.mode == "production"]
            if step is not None and in_production:
                raise step_refusal(program, in_production)
            if program not in self._checked:
                check_plugins(program, self._facts)
                self._checked.add(program)
            self._is_step = step is not None
            concurrent.futures.wait(self._following)  # of a run that failed or was interrupted
            uses = storage_of(program)
            try:
                if any(use.action == "load" for use in uses):
                    self._know_facts()  # of what others have stored meanwhile
                stored = stored_labels(program, self._facts)
                follow = self._memory.follow_values
                self._to_follow = functools.partial(follow, program, args, stored)
                results = super().submit(program, args, step)
                self._follow()
                remember(results, self._following[0].result())
            except BaseException:
                self._follow()
                self._abort_run("the host was interrupted")
                with contextlib.suppress(MPLangError):
                    self._know_stored(uses)  # it may have stored something before
                raise
            self._know_stored(uses)
            return results

    def _follow(self) -> None:
        """Begin to follow the labels of the run, unless that was done."""
        follow, self._to_follow = self._to_follow, None
        if follow is not None:
            self._following = [self._lease.pool.submit(follow)]

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Lock the session for this thread, and reopen it if needed."""
        with self._run_lock:
            if self._closed:
                raise RunError("this host is closed")
            if not self._opened:
                self._open()
            yield

    # -- runs

    def _begin(self, run: str) -> None:
        self._active_run = run, {}
        self._monitor.begin()

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[list[Any]]:
        assert self._active_run is not None
        recorder = self._recorder(rank, run)
        future = self._lease.pool.submit(
            self._call, self._run, rank, run, self._generation, program, inputs, parties, recorder,
            self._is_step,
        )  # fmt: skip
        self._active_run[1][rank] = future
        return future

    def _run(
        self,
        rank: int,
        run: str,
        generation: int,
        program: Program,
        inputs: Sequence[HostVar],
        parties: Mask,
        recorder: Recorder | None,
        step: bool,
    ) -> list[Any]:
        """Run a program at one worker, in the generation in which the run began."""
        client = self._clients[rank]
        path = ("v1", "sessions", self.session, "jobs")
        name, data = self._serialized(program)
        request = JobRequest(
            run, name, generation, [self._input(rank, x) for x in inputs], list(parties),
            drain(self._dropped[rank]), recorder is not None, step,
        )  # fmt: skip
        body = [msgspec.msgpack.encode(request)]
        sent = now()
        try:
            status = client.request("POST", *path, body=body, wait=POLL_INTERVAL, run=run)
        except RefusedError as error:
            if error.code != "unknown-program":
                raise
            client.request("PUT", *path[:-1], "programs", name, body=[data])
            sent = now()
            status = client.request("POST", *path, body=body, wait=POLL_INTERVAL, run=run)
        self._monitor.update(rank, status)
        while status["state"] in ("queued", "running"):
            if run in self._cancelled:
                raise AbortedError(f"party {rank} did not end in time")
            status = client.request("GET", *path, run, wait=POLL_INTERVAL)
            self._monitor.update(rank, status)
        if recorder is not None:
            self._fetch_spans(rank, recorder, status, sent)
        if status["state"] != "done":
            raise Failure(**status["error"]).error()
        return self._results(rank, run, program, status["held"])

    def _fetch_spans(
        self, rank: int, recorder: Recorder, status: Mapping[str, Any], sent: float
    ) -> None:
        """Download the spans of a run into a recorder; ignore errors."""
        heard = now()
        path = ("v1", "sessions", self.session, "jobs", recorder.run, "spans")
        with contextlib.suppress(RunError, WireError):
            found = read_spans(self._clients[rank].fetch(*path, max_size=MAX_SPANS).data)
            offset = clock_offset(sent, status["begun"], status["now"], heard)
            recorder.take(found.spans, found.dropped, offset)

    def progress(self) -> list[PartyState]:
        """Return the state of each worker, at most a second old."""
        return list(self._monitor.states)

    def _results(
        self, rank: int, run: str, program: Program, held: Sequence[bool]
    ) -> list[Ref | None]:
        found: list[Ref | None] = []
        for i, (is_here, out) in enumerate(zip(held, program.graph.outputs, strict=True)):
            assert isinstance(out.type, MPType)
            ref = Ref(f"{run}.{i}", out.type.base, self._dropped[rank]) if is_here else None
            found.append(ref)
        return found

    def _serialized(self, program: Program) -> tuple[str, bytes]:
        """Return the SHA-256 and the bytes of a program, cached."""
        found = self._programs.get(program)
        if found is None:
            data = to_bytes(program)
            found = self._programs[program] = hashlib.sha256(data).hexdigest(), data
        return found

    def _input(self, rank: int, var: HostVar) -> Input:
        """Return an input for a request; a large literal is uploaded to the party before."""
        literal = var.values[rank]
        if not isinstance(literal, Literal):
            return Stored([None if each is None else each.name for each in var.values])
        if isinstance(literal.input, Uploaded) and rank not in literal.refs:
            name = PUBLIC_NAME + literal.input.digest
            literal.refs[rank] = self._put_value(rank, literal.array, name)
        return literal.input

    def _put_value(self, rank: int, value: Any, name: str) -> Ref:
        head, buffers = pack(value)
        path = ("v1", "sessions", self.session, "values", name)
        with self._progress_bars.track(
            f"put to {self._workers[rank][0]}", sum(map(len, buffers))
        ) as on_progress:
            self._clients[rank].request(
                "PUT", *path, body=[frame_head(head), *buffers], on_progress=on_progress
            )
        return Ref(name, type_of(value), self._dropped[rank])

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        self._follow()
        concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        if any(future.done() and future.exception() for future in futures):
            wait_for_cause(futures)
            assert self._active_run is not None
            self._abort_run(abort_reason(self._active_run[1]))
        self._active_run = None
        return [outcome_of(future) for future in futures]

    def _abort_run(self, reason: str) -> None:
        """Cancel the active run at all workers, and start a new generation before the next run."""
        if self._active_run is None:
            return
        run, futures = self._active_run
        self._generation += 1
        self._opened = False
        path = ("v1", "sessions", self.session, "jobs", run)

        def cancel(client: WorkerClient) -> None:
            with contextlib.suppress(RunError):
                client.request("DELETE", *path, reason=reason)

        lost = {
            rank
            for rank, future in futures.items()
            if future.done() and isinstance(future.exception(), LostWorkerError)
        }
        answers = [
            self._lease.pool.submit(cancel, client)
            for rank, client in enumerate(self._clients)
            if rank not in lost
        ]
        waited: list[Future[Any]] = [*answers, *futures.values()]
        if concurrent.futures.wait(waited, timeout=2 * POLL_INTERVAL).not_done:
            self._cancelled.add(run)  # so that threads which still poll it give up
        self._active_run = None

    def _explain(self, failures: list[tuple[int, BaseException]]) -> BaseException:
        """Add the locations of the other parties if a worker was lost or communication failed."""
        failure = super()._explain(failures)
        if not isinstance(failure, PartyError):
            return failure
        cause = next(error for rank, error in failures if rank == failure.rank)
        if failure.op is None or isinstance(cause, CommError):
            places = party_locations(failures, self._monitor.states, failure.rank)
            failure.args = ("; ".join([str(failure), *places]),)
        return failure

    # -- values

    def read_literal(self, literal: Any) -> Any:
        """Return what a user puts; an array is not copied, as it is uploaded before put returns."""
        if not isinstance(literal, np.ndarray):
            return super().read_literal(literal)
        array = np.asarray(literal, TensorType.of(literal).dtype.numpy).view()
        array.flags.writeable = False
        return array

    def _give(self, value: Any, parties: Mask | None) -> HostVar:
        """Return a value as a variable: uploaded now to ``parties``, and to nobody else.

        Args:
            value: array, table, or value of a plugin's type.
            parties: the parties that hold it; all if ``None``, and then it is public.

        Raises:
            PartyError: an upload failed.
            RunError: the host is closed.
        """
        holders = self.mask if parties is None else parties
        public = holders == self.mask
        if public and isinstance(value, np.ndarray):
            return HostVar([Literal(frozen(value))] * self.world_size, public=True)
        with self._exclusive():
            name = f"put.{next(self._puts)}"

            def put(rank: int) -> Ref | None:
                return self._put_value(rank, value, name) if rank in holders else None

            return HostVar(self._call_all(put), public=public)

    def _fetch(self, rank: int, value: Any) -> Any:
        if isinstance(value, Literal):
            return value.array
        path = ("v1", "sessions", self.session, "values", value.name)
        size = _byte_size(value.kind)
        with self._progress_bars.track(f"fetch from {self._workers[rank][0]}", size) as on_progress:
            data = self._clients[rank].fetch(*path, on_progress=on_progress)
        return split_frame(data.data).value(value.kind)

    def close(self) -> None:
        """Close the session and release its values. Idempotent."""
        with self._run_lock:
            if self._closed:
                return
            self._closed = True
            self._lease.stop()


def _read_approval(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    try:
        return str(path), Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the approval {path}: {error.strerror}") from None


def _worker_addresses(
    cluster: ClusterSpec, addresses: Sequence[str] | None
) -> list[tuple[str, str]]:
    if addresses is None:
        addresses = [node.address for node in cluster.nodes]
    if len(addresses) != len(cluster.nodes):
        raise ConfigError(f"{len(cluster.nodes)} nodes have {len(addresses)} addresses")
    for node, address in zip(cluster.nodes, addresses, strict=True):
        if not address:
            raise ConfigError(
                f"the node {node.name} has no address, such as http://127.0.0.1:9000, so no "
                "worker is found there; mplang up -n 3 starts some, and writes a cluster.yaml"
            )
    return [(node.name, at) for node, at in zip(cluster.nodes, addresses, strict=True)]


def _byte_size(kind: BaseType) -> int | None:
    """Return the size in bytes of a type's values; ``None`` if it is unknown."""
    if not isinstance(kind, TensorType):
        return None
    return math.prod(kind.shape) * kind.dtype.numpy.itemsize

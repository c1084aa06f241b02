"""Driver of the HTTP backend: the host that runs programs on remote workers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from mplang_analysis import StorageUse, storage_of, texts_digest
from mplang_analysis.ext import ShownHost

from mplang_core import ClusterSpec, Mask, MPLangError, Program, TensorType
from mplang_core.ext import (
    AdmissionError,
    CommError,
    ConfigError,
    HostVar,
    Mode,
    PartyError,
    PartyState,
    RunError,
    at,
    frozen,
    outcome_of,
    to_bytes,
    wait_for_outcome,
)
from mplang_http.base.natives import natives_of_kinds, needed_natives
from mplang_http.base.plugin_versions import compatible, pass_versions
from mplang_http.coordinator.client import LostWorkerError, WorkerClient
from mplang_http.coordinator.compatibility import (
    WorkerFacts,
    check_parties,
    check_plugins,
    known_data,
    stored_labels,
)
from mplang_http.coordinator.failure_report import abort_reason, party_locations, wait_for_cause
from mplang_http.coordinator.flights import Flights, flight_of
from mplang_http.coordinator.job_monitor import JobMonitor
from mplang_http.coordinator.label_follower import LabelFollower
from mplang_http.coordinator.lease import LeaseRenewer
from mplang_http.coordinator.progress_bars import ProgressBars
from mplang_http.coordinator.receipts import Receipts
from mplang_http.coordinator.references import Literal, Ref, Values
from mplang_http.coordinator.remote_worker import POLL_INTERVAL, Job, RemoteWorker, call_worker
from mplang_http.tls.contexts import client_context
from mplang_http.tls.files import TlsFiles
from mplang_http.wire.observability import warn_of_unobserved
from mplang_http.wire.protocols import MPC_ENDED
from mplang_http.wire.steps import step_refusal
from mplang_http.wire.versions import versions

T = TypeVar("T")


class SimpHttpDriver(ShownHost):
    """Host that runs programs on workers, over HTTP.

    Args:
        cluster_spec: the parties; each node has an address, unless ``addresses`` gives them.
        addresses: addresses of the workers, by rank.
        mode: see :class:`mplang_core.simp.SimpHost`.
        tls: this coordinator's certificate, key and authority; ``"certs/host"`` stands for
            the files that mplang keygen makes.
        timeout: seconds that a party waits for a message of one that is not known to be at work;
            the workers' limit by default.
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
        patience: float = 10.0,
        progress: bool | None = None,
        approvals: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._approvals = [_read_approval(path) for path in approvals]
        files = TlsFiles.of(tls)
        context = client_context(files, "http/1.1") if files is not None else None
        self._monitor, bars = JobMonitor(self.world_size), ProgressBars(progress)
        receipts = Receipts()
        self._workers = [
            RemoteWorker(
                rank, WorkerClient(name, address, context, patience, self.session),
                self.session, self._monitor, bars, receipts,
            )
            for rank, (name, address) in enumerate(_worker_addresses(cluster_spec, addresses))
        ]  # fmt: skip
        self._timeout = timeout
        self._natives = natives_of_kinds(each.kind for each in cluster_spec.devices.values())
        self._generation = 0
        self._opened = False
        self._closed = False
        self._run_lock = threading.Lock()
        self._programs: weakref.WeakKeyDictionary[Program, tuple[str, bytes, str | None]]
        self._programs = weakref.WeakKeyDictionary()
        self._puts = itertools.count()
        self._facts: list[WorkerFacts] = []
        self._checked: weakref.WeakSet[Program] = weakref.WeakSet()  # whose plugins all have
        self._is_step = False  # whether the active run is a step
        self._is_ahead = False  # whether it is sent ahead
        # the name of the run, and its futures by rank
        self._active_run: tuple[str, dict[int, Future[Values]]] | None = None
        self._lease = LeaseRenewer(self._workers)
        self._follower = LabelFollower(self._lease.pool)
        self._flights = Flights(
            self._workers, self._lease.pool,
            weakref.WeakMethod(self._explain), weakref.WeakMethod(self._start_over),
        )  # fmt: skip
        weakref.finalize(self, self._lease.stop)
        weakref.finalize(self, receipts.close)
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
        linked, tries = False, self.world_size
        while not linked:
            tries -= 1
            try:
                self._open_and_link()
                linked = True
            except PartyError as error:  # nothing is lost with an MPC process: there is another one
                if not tries or getattr(error.__cause__, "code", None) != MPC_ENDED:
                    raise

    def _open_and_link(self) -> None:
        self._flights.settle(tells=False)  # those of the last generation
        self._know_facts()
        check_parties(self._facts)
        self._checked = weakref.WeakSet()
        request = {
            "parties": [{"name": each.name, "address": each.address} for each in self._workers],
            "versions": versions(),
            "compatible": compatible(),
            "pass_versions": pass_versions(),
            "timeout": self._timeout,
            "native": sorted(self._natives),
        }
        opened = self._call_all(lambda worker: worker.open(request))
        linked = {
            "credentials": [engine for engine, _ in opened],
            "native": {
                service: [native[service] for _, native in opened]
                for service in opened[0][1]
                if all(service in native for _, native in opened)
            },
            "generation": self._generation,
        }
        self._call_all(lambda worker: worker.link(linked))
        for name, data in self._approvals:
            self._pass_on(name, data)
        self._opened = True

    def _pass_on(self, name: str, data: bytes) -> None:
        """Pass an approval on to all workers.

        Raises:
            ConfigError: it counts at none of them.
        """
        if not any(self._call_all(lambda worker: worker.pass_on(data))):
            raise ConfigError(
                f"approval {name} counts at no party: it is for other parties, or too few of its "
                "signers are listed there",
                code="C011",
            )

    def _know_facts(self) -> None:
        self._facts = self._call_all(RemoteWorker.facts)
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

    def _call_all(self, action: Callable[[RemoteWorker], T]) -> list[T]:
        """Call all workers in parallel; raise the first failures."""
        futures = [self._lease.pool.submit(call_worker, action, worker) for worker in self._workers]
        wait_for_outcome(futures)
        ended = [(rank, future) for rank, future in enumerate(futures) if future.done()]
        failures = [(rank, e) for rank, future in ended if (e := future.exception()) is not None]
        if failures:
            raise self._explain(failures)
        return [future.result() for future in futures]

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
            self._need(needed_natives(program))
            self._is_step = step is not None
            uses = storage_of(program)
            fits = self._is_step and self.observe is None and not uses
            self._is_ahead = self._flights.admits(program, args) and fits
            if not self._is_ahead:
                self._flights.settle()
            try:
                if any(use.action == "load" for use in uses):
                    self._know_facts()  # of what others have stored meanwhile
                self._follower.expect(program, args, stored_labels(program, self._facts))
                results = super().submit(program, args, step)
                self._follower.remember(results)
            except BaseException:
                self._follower.begin()
                self._abort_run("the host was interrupted")
                with contextlib.suppress(MPLangError):
                    self._know_stored(uses)  # it may have stored something before
                raise
            self._know_stored(uses)
            return results

    def _need(self, natives: frozenset[str]) -> None:
        """Open the session for native services that it was not opened for."""
        if natives <= self._natives:
            return
        before, self._natives = self._natives, self._natives | natives
        self._generation += 1
        self._opened = False
        try:
            self._open()
        except BaseException:
            self._natives = before  # the next program may need none that is not there
            raise

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Lock the session for this thread, and reopen it if needed."""
        with self._run_lock:
            if self._closed:
                raise RunError("this host is closed", code="R003")
            if self._opened and not all(worker.linked for worker in self._workers):
                self._generation += 1
                self._opened = False
            if not self._opened:
                self._open()
            yield

    # -- runs

    def pipeline(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which steps of this thread are sent ahead.

        What workers in production take, whole programs, is awaited; so are steps that are recorded,
        use storage, or have other parties than those under way.
        """
        return self._flights.scope(self._run_lock)

    def _run_parties(
        self, program: Program, args: Sequence[HostVar], parties: Mask
    ) -> dict[int, Values]:
        if not self._is_ahead:
            return super()._run_parties(program, args, parties)
        run = f"{self.session}-{next(self._count)}"
        return self._flights.send(self._job(run, program, args, parties))

    def _begin(self, run: str) -> None:
        self._active_run = run, {}
        self._monitor.begin()

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[Values]:
        assert self._active_run is not None
        job = self._job(run, program, inputs, parties)
        run_at = functools.partial(RemoteWorker.run, job=job, recorder=self._recorder(rank, run))
        future = self._lease.pool.submit(call_worker, run_at, self._workers[rank])
        self._active_run[1][rank] = future
        return future

    def _job(self, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask) -> Job:
        return Job(
            run, self._generation, program, *self._serialized(program), inputs, parties,
            self._is_step,
        )  # fmt: skip

    def progress(self) -> list[PartyState]:
        """Return the state of each worker, at most a second old."""
        return list(self._monitor.states)

    def _serialized(self, program: Program) -> tuple[str, bytes, str | None]:
        """Return the SHA-256 and the bytes of a program, and the digest of its lines; cached."""
        found = self._programs.get(program)
        if found is None:
            data = to_bytes(program)
            # a step may stand in a line with data, and nobody approves it
            texts = None if self._is_step else texts_digest(program)
            found = self._programs[program] = hashlib.sha256(data).hexdigest(), data, texts
        return found

    def _collect(self, run: str, futures: Sequence[Future[Values]]) -> list[Values | BaseException]:
        self._follower.begin()
        wait_for_outcome(futures)
        if any(future.done() and future.exception() for future in futures):
            wait_for_cause(futures)
            assert self._active_run is not None
            self._abort_run(abort_reason(self._active_run[1]))
        self._active_run = None
        if self.observe is not None:
            workers = zip(self._workers, self._monitor.states, strict=True)
            warn_of_unobserved([each.name for each, state in workers if not state.observable])
        return [outcome_of(future) for future in futures]

    def _abort_run(self, reason: str) -> None:
        """Cancel the active run at all workers, and start a new generation before the next run."""
        if self._active_run is None:
            return
        run, futures = self._active_run
        self._start_over()
        lost = {
            rank
            for rank, future in futures.items()
            if future.done() and isinstance(future.exception(), LostWorkerError)
        }
        answers = [
            self._lease.pool.submit(worker.cancel, [run], reason)
            for rank, worker in enumerate(self._workers)
            if rank not in lost
        ]
        waited: list[Future[Any]] = [*answers, *futures.values()]
        if concurrent.futures.wait(waited, timeout=2 * POLL_INTERVAL).not_done:
            for worker in self._workers:
                worker.give_up(run)  # so that threads which still poll it end
        self._active_run = None

    def _start_over(self) -> None:
        """Start a new generation before the next run."""
        self._generation += 1
        self._opened = False

    def _explain(self, failures: list[tuple[int, BaseException]]) -> BaseException:
        """Add the locations of the other parties if a worker was lost or communication failed."""
        failure = super()._explain(failures)
        if not isinstance(failure, PartyError):
            return failure
        cause = next(error for rank, error in failures if rank == failure.rank)
        unclear = failure.op is None and not isinstance(cause, AdmissionError)  # nothing ran
        if unclear or isinstance(cause, CommError):
            places = party_locations(failures, self._monitor.states, failure.rank, self.party)
            failure.args = ("; ".join([str(failure), *places]),)
        return failure

    # -- values

    def read_literal(self, literal: Any) -> Any:
        """Return what a user puts; an array is not copied, as it is uploaded before put returns."""
        if type(literal) is not np.ndarray:
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

            def put(worker: RemoteWorker) -> Ref | None:
                return worker.put(name, value) if worker.rank in holders else None

            return HostVar(self._call_all(put), public=public)

    def fetch(self, var: HostVar) -> Values:
        """Return the data of a value, once the step has ended that gives it.

        Args:
            var: the value.

        Returns:
            One entry per rank, ``None`` for a party without it.

        Raises:
            PartyError: a step that was sent ahead has failed: that one, or one before it.
        """
        flight = flight_of(var)
        if flight is not None:
            with self._run_lock:
                self._flights.settle(flight)
                self._flights.check([var])
        return super().fetch(var)

    def _fetch(self, rank: int, value: Any) -> Any:
        if self._closed:
            raise RunError(f"{at()}this host is closed; fetch before it is", code="R003")
        if isinstance(value, Literal):
            return value.array
        return self._workers[rank].fetch(value)

    def close(self) -> None:
        """Close the session and release its values. Idempotent."""
        with self._run_lock:
            if self._closed:
                return
            self._closed = True
            ended = f"this host was closed when {len(self._flights)} steps were under way"
            self._flights.abort(ended, RunError(ended, code="R003"))
            self._lease.stop()


def _read_approval(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    try:
        return str(path), Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the approval {path}: {error.strerror}", code="C011"
        ) from None


def _worker_addresses(
    cluster: ClusterSpec, addresses: Sequence[str] | None
) -> list[tuple[str, str]]:
    if addresses is None:
        addresses = [node.address for node in cluster.nodes]
    if len(addresses) != len(cluster.nodes):
        raise ConfigError(
            f"{len(cluster.nodes)} nodes have {len(addresses)} addresses", code="C010"
        )
    for node, address in zip(cluster.nodes, addresses, strict=True):
        if not address:
            raise ConfigError(
                f"the node {node.name} has no address, such as http://127.0.0.1:9000, so no "
                "worker is found there; mplang up -n 3 starts some, and writes a cluster.yaml",
                code="C010",
            )
    return [(node.name, at) for node, at in zip(cluster.nodes, addresses, strict=True)]

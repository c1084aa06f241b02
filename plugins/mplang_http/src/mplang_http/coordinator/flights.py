"""Flights: steps that a host sends ahead, before it knows how those before them have ended."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar
from weakref import WeakMethod

from mplang_core import MPLangError, MPType, Program
from mplang_core.ext import AbortedError, HostVar, wait_for_outcome
from mplang_http.coordinator.client import LostWorkerError, RefusedError
from mplang_http.coordinator.failure_report import abort_reason, wait_for_cause
from mplang_http.coordinator.references import Literal, PendingRun, Ref, Values
from mplang_http.coordinator.remote_worker import (
    POLL_INTERVAL,
    Job,
    RemoteWorker,
    Status,
    call_worker,
)
from mplang_http.wire.requests import Public

MAX_FLIGHTS = 16  # steps that are sent ahead
MAX_BYTES = 8 << 20  # bytes of literals in their requests

F = TypeVar("F", bound=Callable[..., object])
AnyFuture: TypeAlias = Future[Any]
Refs: TypeAlias = Sequence[Ref | None]


@dataclass(eq=False)
class Flight(PendingRun):
    """A step that was sent ahead, and what is known of it.

    It holds its inputs and results until it has ended, so that none is released before.

    Attributes:
        job: the step.
        results: by rank one reference per output.
        owner: the thread that has sent it.
        queued: by rank its status, once the worker has taken it.
        ended: by rank whether it has ended well.
        size: bytes of literals in its request.
    """

    job: Job
    results: Mapping[int, Refs]
    owner: int
    queued: dict[int, Future[Status]] = field(init=False)
    ended: dict[int, AnyFuture] = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.queued = {rank: Future() for rank in self.job.parties}
        self.ended = {rank: Future() for rank in self.job.parties}
        self.size = sum(map(_size, self.job.inputs))
        for ref in self._references():
            ref.flight = self

    def _references(self) -> list[Ref]:
        return [ref for refs in self.results.values() for ref in refs if ref is not None]

    def errors(self, *effects: type[BaseException]) -> list[tuple[int, BaseException]]:
        """Return the errors that are known of it, by rank.

        Args:
            *effects: classes of errors that are left out.
        """
        known = [(rank, each.exception()) for rank, each in self.ended.items() if each.done()]
        return [(r, e) for r, e in known if e is not None and not isinstance(e, effects)]

    def is_well(self) -> bool:
        """Return whether it is known to have ended well at all parties."""
        return all(_is_well(each) for each in self.ended.values())

    def land(self) -> None:
        """Record that it has ended well at all parties."""
        for ref in self._references():
            ref.flight = None
        self.results, self.job = {}, replace(self.job, inputs=())

    def abort(self, reason: str) -> None:
        """End all waiting for what has not come."""
        waiting: list[AnyFuture] = [*self.queued.values(), *self.ended.values()]
        for future in waiting:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(AbortedError(reason))


class _Lane:
    """Sends flights to one worker, in order; each once the worker has taken the one before.

    Args:
        worker: the worker.
        pool: threads to send in.
    """

    def __init__(self, worker: RemoteWorker, pool: ThreadPoolExecutor) -> None:
        self._worker, self._pool = worker, pool
        self._waiting: deque[Flight] = deque()
        self._lock = threading.Lock()
        self._sends = False
        self._last: Flight | None = None
        self.stopped = False

    def put(self, flight: Flight) -> None:
        """Send a flight, after those before it."""
        with self._lock:
            self._waiting.append(flight)
            if self._sends:
                return
            self._sends = True
        self._pool.submit(self._send_all)

    def _send_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._sends = False
                    return
                flight = self._waiting.popleft()
            future = flight.queued[self._worker.rank]
            try:
                if self.stopped:
                    raise AbortedError("it was not sent, as one before it had failed")
                status = call_worker(functools.partial(self._send, flight), self._worker)
            except BaseException as error:
                self.stopped = True
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(error)
            else:
                self._last = flight
                with contextlib.suppress(InvalidStateError):
                    future.set_result(status)

    def _send(self, flight: Flight, worker: RemoteWorker) -> Status:
        before = self._last
        if before is not None and _is_well(before.ended[worker.rank]):
            before = None
        body = worker.request(flight.job, after=None if before is None else before.job.run)
        try:
            return worker.queue(flight.job, body)
        except RefusedError as error:
            if error.reason != "busy" or before is None:
                raise
        status = before.queued[worker.rank].result()
        worker.await_end(before.job, status)  # which leaves room for this one
        return worker.queue(flight.job, body)

    def finish(self, flights: Sequence[Flight]) -> None:
        """Wait for the ends of flights; from a thread of its own.

        None runs unless the one before it has ended well, so the last one tells of all; one by one
        they are only asked for where it has not, or where the gate has signed something of each.
        """
        rank = self._worker.rank
        if not self._worker.has_gate:
            with contextlib.suppress(MPLangError, InvalidStateError):
                self._finish(flights[-1])
                for flight in flights:
                    flight.ended[rank].set_result(None)
                return
        for flight in flights:
            future = flight.ended[rank]
            try:
                self._finish(flight)
            except BaseException as error:
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(error)
            else:
                with contextlib.suppress(InvalidStateError):
                    future.set_result(None)

    def _finish(self, flight: Flight) -> None:
        rank = self._worker.rank
        status, expected = flight.queued[rank].result(), flight.results[rank]
        finish = functools.partial(
            RemoteWorker.finish, job=flight.job, status=status, expected=expected
        )
        call_worker(finish, self._worker)


class Flights:
    """The flights of a host, in the order in which they were sent; not safe for threads.

    All of them have the same parties: so a party that works on an earlier one is waited for, and
    none begins before those that it follows have ended well at each of its parties.

    Args:
        workers: the workers, by rank.
        pool: threads for requests to the workers.
        explain: returns the error that a host raises for the errors of parties.
        on_failure: called once no more runs may be sent in this generation of the session.
    """

    def __init__(
        self,
        workers: Sequence[RemoteWorker],
        pool: ThreadPoolExecutor,
        explain: WeakMethod[Callable[[list[tuple[int, BaseException]]], BaseException]],
        on_failure: WeakMethod[Callable[[], None]],
    ) -> None:
        self._workers, self._pool = workers, pool
        self._explain, self._on_failure = explain, on_failure
        self._all: deque[Flight] = deque()
        self._lanes: dict[int, _Lane] = {}
        self._failures: dict[int, BaseException] = {}  # by owner, until it is raised
        self._owners: set[int] = set()  # threads inside of :meth:`scope`

    def __len__(self) -> int:
        return len(self._all)

    @contextlib.contextmanager
    def scope(self, lock: threading.Lock) -> Iterator[None]:
        """Send steps of this thread ahead inside of ``with``, and wait for all at its end.

        Args:
            lock: held by who uses the flights.

        Raises:
            PartyError: a step has failed, and the thread was not told.
        """
        me = threading.get_ident()
        if me in self._owners:
            yield
            return
        self._owners.add(me)
        try:
            yield
            with lock:
                self.settle()
        except Exception as error:
            try:
                with lock:
                    self.settle()
            except MPLangError as failure:
                error.add_note(f"a step that was sent ahead has failed, too: {failure}")
            raise
        except BaseException:
            with lock:
                self.abort("the host was interrupted")
            raise
        finally:
            self._owners.discard(me)

    def admits(self, program: Program, args: Sequence[HostVar]) -> bool:
        """Return whether this thread may send a step ahead.

        Args:
            program: its program.
            args: its inputs.

        Raises:
            RunError: a step that was sent ahead has failed, and was to give an input, or the thread
                was not told.
        """
        self._tell()
        self.check(args)
        kinds = (out.type for out in program.graph.outputs)
        is_static = all(isinstance(kind, MPType) and kind.pmask is not None for kind in kinds)
        return is_static and threading.get_ident() in self._owners

    def send(self, job: Job) -> dict[int, Values]:
        """Send a step ahead; wait for the first ones where too many are under way.

        Args:
            job: the step; the types of its results say who holds them.

        Returns:
            By rank one reference per output, ``None`` where the party holds none.
        """
        if self._all and self._all[0].job.parties != job.parties:
            self.settle()
        results: dict[int, Values]
        results = {rank: self._workers[rank].expected(job) for rank in job.parties}
        flight = Flight(job, results, threading.get_ident())
        while self._all and (
            len(self._all) >= MAX_FLIGHTS
            or sum(each.size for each in self._all) + flight.size > MAX_BYTES
        ):
            self.settle(self._all[(len(self._all) - 1) // 2])
        self._all.append(flight)
        for rank in job.parties:
            if rank not in self._lanes:
                self._lanes[rank] = _Lane(self._workers[rank], self._pool)
            self._lanes[rank].put(flight)
        return results

    def settle(self, last: Flight | None = None, *, tells: bool = True) -> None:
        """Wait for the ends of flights; after a failure none of the others runs.

        Args:
            last: the last flight that is waited for; all by default.
            tells: whether to raise the failure of a flight of this thread, or leave it for later.

        Raises:
            PartyError: one of this thread's has failed, and it was not told.
            KeyboardInterrupt: the user interrupts it; all flights end.
        """
        flights = list(self._all)
        if last is not None:
            flights = flights[: flights.index(last) + 1] if last in flights else []
        if flights:
            self._await(flights)
        if tells:
            self._tell()

    def _await(self, flights: Sequence[Flight]) -> None:
        """Wait for the ends of the first flights."""
        try:
            for rank in flights[0].job.parties:
                self._pool.submit(self._lanes[rank].finish, flights)
            ended = [each for flight in flights for each in flight.ended.values()]
            wait_for_outcome(ended)
            if any(each.done() and each.exception() for each in ended):
                self._fail(flights)
            else:
                for _ in flights:
                    self._all.popleft().land()
        except BaseException:
            self.abort("the host was interrupted")
            raise

    def _tell(self) -> None:
        """Raise the failure of this thread's flights, if it was not told of it."""
        failure = self._failures.pop(threading.get_ident(), None)
        if failure is not None:
            raise failure

    def check(self, values: Sequence[HostVar]) -> None:
        """Raise the failure of the flight that was to give one of some values.

        Raises:
            RunError: it has failed, or has not run.
        """
        for var in values:
            flight = flight_of(var)
            if flight is not None and flight.failure is not None:
                if self._failures.get(flight.owner) is flight.failure:
                    del self._failures[flight.owner]
                raise flight.failure

    def _fail(self, flights: Sequence[Flight]) -> None:
        """End all flights, as one of those that are waited for has failed, and learn why."""
        ended = [each for flight in flights for each in flight.ended.values()]
        wait_for_cause(ended)
        sent = self._end_all(abort_reason(_first_failed(flights).ended), ended)
        failed = _first_failed(flights)
        failure = _located(_target(self._explain)(failed.errors()), failed.job)
        for each in sent:
            if each.is_well():
                each.land()
                continue
            each.failure = failure
            self._failures.setdefault(each.owner, failure)

    def abort(self, reason: str, failure: BaseException | None = None) -> None:
        """End all flights at all workers.

        Args:
            reason: text for their errors.
            failure: what their owners are told; nothing by default.
        """
        for flight in self._end_all(reason):
            flight.failure = failure or AbortedError(reason)
            if failure is not None:
                self._failures.setdefault(flight.owner, failure)

    def _end_all(self, reason: str, awaited: Sequence[AnyFuture] = ()) -> Sequence[Flight]:
        """Cancel all flights, and return them; wait a moment for the ends of some."""
        flights, lanes = list(self._all), self._lanes
        self._all.clear()
        self._lanes = {}
        if not flights:
            return flights
        for lane in lanes.values():
            lane.stopped = True
        _target(self._on_failure)()
        answers = [
            self._pool.submit(self._workers[rank].cancel, _to_cancel(flights, rank), reason)
            for rank in flights[0].job.parties
        ]
        concurrent.futures.wait([*answers, *awaited], timeout=2 * POLL_INTERVAL)
        for flight in flights:
            for rank in flight.job.parties:  # so that threads which still poll it end
                self._workers[rank].give_up(flight.job.run)
            flight.abort(reason)
        return flights


def _target(method: WeakMethod[F]) -> F:
    """Return a method of the host, which uses its flights, so that it is there."""
    target = method()
    assert target is not None
    return target


def _first_failed(flights: Sequence[Flight]) -> Flight:
    """Return the first of some flights that has failed, and not only as another one did."""
    causes = (each for each in flights if each.errors(AbortedError))
    effects = (each for each in flights if each.errors())
    return next(itertools.chain(causes, effects))


def _to_cancel(flights: Sequence[Flight], rank: int) -> list[str]:
    """Return the names of the runs that may go on at a worker; none if it was lost."""
    futures = [each for flight in flights for each in (flight.queued[rank], flight.ended[rank])]
    if any(each.done() and isinstance(each.exception(), LostWorkerError) for each in futures):
        return []
    return [flight.job.run for flight in flights if not _is_well(flight.ended[rank])]


def _is_well(ended: AnyFuture) -> bool:
    """Return whether a flight is known to have ended well at a worker."""
    return ended.done() and ended.exception() is None


def _located(error: BaseException, job: Job) -> BaseException:
    """Return a failure with op and line of its step, as it is raised at another line."""
    (op,) = job.program.graph.ops
    where = str(op.location) if op.location else None
    if isinstance(error, Exception):
        if getattr(error, "op", None) is None:
            error.op, error.location = op.opcode, where  # type: ignore[attr-defined]
            error.args = (f"{error}; it was in {op.opcode} at {where}", *error.args[1:])
        error.add_note(
            f"{op.opcode} at {where} was sent ahead, in host.pipeline(): what was sent after it "
            "has not run"
        )
    return error


def flight_of(var: HostVar) -> Flight | None:
    """Return the flight that is to give a value, unless that has ended well."""
    flights = (each.flight for each in var.values if isinstance(each, Ref))
    return next((each for each in flights if isinstance(each, Flight)), None)


def _size(var: HostVar) -> int:
    """Return the size in bytes of an input that is in the request itself."""
    literal = next((each for each in var.values if isinstance(each, Literal)), None)
    sent = None if literal is None else literal.input
    return len(sent.value) if isinstance(sent, Public) else 0

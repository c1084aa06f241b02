"""The host of the HTTP backend: the coordinator of workers in processes of their own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np

from mplang_core.device import ClusterSpec
from mplang_core.errors import AbortedError, ConfigError, RunError
from mplang_core.ir import Program
from mplang_core.ir.wire import to_bytes
from mplang_core.simp import HostVar, SimpHost
from mplang_core.simp.host import Mode
from mplang_core.types import BaseType, MPType, TensorType, array_of, frozen
from mplang_http.client import LostWorkerError, RefusedError, WorkerClient
from mplang_http.config import TlsFiles
from mplang_http.facts import versions
from mplang_http.refusal import error_from
from mplang_http.requests import Given, JobRequest
from mplang_http.tls import client_context
from mplang_http.values import frame_head, joined, pack, split_frame

__all__ = ["SimpHttpDriver"]

POLL = 1.0  # seconds that a worker waits for the end of a job before it says that it goes on
TICK = 1.0  # seconds between looks at what is to be released
SMALL = 16 << 10  # bytes up to which a literal goes along with a job


class Ref:
    """A value at one worker; it is freed there when this is dropped.

    Attributes:
        name: its name at the worker.
        kind: its type.
    """

    __slots__ = ("_dropped", "kind", "name")

    def __init__(self, name: str, kind: BaseType, dropped: deque[str]) -> None:
        self.name = name
        self.kind = kind
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.name)


class Literal:
    """A value that all parties know, given to each when it is first used there."""

    __slots__ = ("array", "refs")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.refs: dict[int, Ref] = {}


class SimpHttpDriver(SimpHost):
    """Has workers run programs, over HTTP.

    Args:
        cluster_spec: the parties; each node has an address, unless ``addresses`` gives them.
        addresses: where the workers are, by rank.
        mode: see :class:`mplang_core.simp.SimpHost`.
        tls: this coordinator's certificate, key and authority.
        timeout: how many seconds a party waits for a message; the workers' limit by default.
        patience: how many seconds a worker may go without a sign of life before it is lost.

    Raises:
        ConfigError: a node has no address, or ``tls`` is missing.
        RunError: a worker cannot be reached, or does not fit.

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
        tls: TlsFiles | Mapping[str, str] | None = None,
        timeout: float | None = None,
        patience: float = 3.0,
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._party = _parties(cluster_spec, addresses)
        files = TlsFiles(**tls) if isinstance(tls, Mapping) else tls
        context = client_context(files, "http/1.1") if files is not None else None
        self._clients = [
            WorkerClient(name, address, context, patience) for name, address in self._party
        ]
        self._timeout = timeout
        self._generation = 0
        self._opened = False
        self._closed = False
        self._one_run = threading.Lock()
        self._dropped: list[deque[str]] = [deque() for _ in self._clients]
        self._programs: weakref.WeakKeyDictionary[Program, tuple[str, bytes]]
        self._programs = weakref.WeakKeyDictionary()
        self._literals = 0
        self._cancelled: set[str] = set()
        self._keeper = _Keeper(self.session, self._clients, self._dropped)
        weakref.finalize(self, self._keeper.stop)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    # -- the session

    def _open(self) -> None:
        """Open the session at all workers, or begin a new generation of it."""
        request = {
            "parties": [{"name": name, "address": address} for name, address in self._party],
            "generation": self._generation,
            "versions": versions(),
            "timeout": self._timeout,
        }

        def open_at(rank: int) -> None:
            body = json.dumps({**request, "rank": rank}).encode()
            path = ("v1", "sessions", self.session)
            self._clients[rank].ask("PUT", *path, body=[body], patience=30.0)

        failures = self._everywhere(open_at)
        if failures:
            raise self._explain(failures)
        self._opened = True

    def _everywhere(self, act: Callable[[int], object]) -> list[tuple[int, BaseException]]:
        """Do something for all workers at once; return what failed."""
        futures = [self._keeper.pool.submit(act, rank) for rank in range(self.world_size)]
        concurrent.futures.wait(futures)
        failures = ((rank, future.exception()) for rank, future in enumerate(futures))
        return [(rank, error) for rank, error in failures if error is not None]

    def submit(self, program: Program, args: Sequence[HostVar]) -> list[HostVar]:
        """Run a program; runs of other threads wait, so that none begins amid a failure."""
        with self._one_run:
            if self._closed:
                raise RunError("this host is closed")
            if not self._opened:
                self._open()
            return super().submit(program, args)

    # -- running

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[Any]
    ) -> Future[list[Any]]:
        return self._keeper.pool.submit(self._run, rank, run, program, inputs)

    def _run(self, rank: int, run: str, program: Program, inputs: Sequence[Any]) -> list[Any]:
        client = self._clients[rank]
        path = ("v1", "sessions", self.session, "jobs")
        name, data = self._bytes(program)
        request = JobRequest(
            run, name, self._generation, [self._given(rank, x) for x in inputs],
            _drain(self._dropped[rank]),
        )  # fmt: skip
        body = [msgspec.msgpack.encode(request)]
        try:
            status = client.ask("POST", *path, body=body, wait=POLL, run=run)
        except RefusedError as refused:
            if refused.code != "unknown-program":
                raise
            client.ask("PUT", "v1", "programs", name, body=[data], patience=60.0)
            status = client.ask("POST", *path, body=body, wait=POLL, run=run)
        while status["state"] in ("queued", "running"):
            if run in self._cancelled:
                raise AbortedError(f"party {rank} did not end in time")
            status = client.ask("GET", *path, run, wait=POLL)
        if status["state"] != "done":
            raise error_from(status["error"])
        return self._results(rank, run, program, status["held"])

    def _results(
        self, rank: int, run: str, program: Program, held: Sequence[bool]
    ) -> list[Ref | None]:
        found: list[Ref | None] = []
        for i, (is_here, out) in enumerate(zip(held, program.graph.outputs, strict=True)):
            assert isinstance(out.type, MPType)
            ref = Ref(f"{run}.{i}", out.type.base, self._dropped[rank]) if is_here else None
            found.append(ref)
        return found

    def _bytes(self, program: Program) -> tuple[str, bytes]:
        """Return a program's name and bytes."""
        found = self._programs.get(program)
        if found is None:
            data = to_bytes(program)
            found = self._programs[program] = hashlib.sha256(data).hexdigest(), data
        return found

    def _given(self, rank: int, value: Any) -> Given:
        if isinstance(value, Ref):
            return Given(name=value.name)
        if value is None:
            return Given()
        assert isinstance(value, Literal)
        if value.array.nbytes <= SMALL:
            return Given(value=joined(*pack(value.array)))
        if rank not in value.refs:
            value.refs[rank] = self._put(rank, value.array)
        return Given(name=value.refs[rank].name)

    def _put(self, rank: int, array: np.ndarray[Any, Any]) -> Ref:
        head, buffers = pack(array)
        self._literals += 1
        name = f"put.{rank}.{self._literals}.{id(array):x}"
        path = ("v1", "sessions", self.session, "values", name)
        self._clients[rank].ask("PUT", *path, body=[frame_head(head), *buffers], patience=60.0)
        return Ref(name, TensorType.of(array), self._dropped[rank])

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        try:
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        except BaseException:
            self._abandon(run, futures, "the host was interrupted")
            raise
        if any(future.done() and future.exception() for future in futures):
            self._abandon(run, futures, self._reason(futures))
        return [_outcome(future) for future in futures]

    def _reason(self, futures: Sequence[Future[list[Any]]]) -> str:
        for rank, future in enumerate(futures):
            error = future.exception() if future.done() else None
            if isinstance(error, LostWorkerError):
                return f"party {rank} was lost"
            if error is not None and not isinstance(error, AbortedError):
                return f"party {rank} failed in {getattr(error, 'op', None)}"
        return "another party failed"

    def _abandon(self, run: str, futures: Sequence[Future[list[Any]]], reason: str) -> None:
        """End a run everywhere, and begin the next one with new links among engines."""
        path = ("v1", "sessions", self.session, "jobs", run)

        def cancel(rank: int) -> None:
            future = futures[rank]
            if not (future.done() and isinstance(future.exception(), LostWorkerError)):
                self._clients[rank].ask("DELETE", *path, reason=reason)

        self._cancelled.add(run)
        self._everywhere(cancel)
        concurrent.futures.wait(futures, timeout=2 * POLL)
        self._cancelled.discard(run)
        self._generation += 1
        self._opened = False

    def _explain(self, failures: list[tuple[int, BaseException]]) -> BaseException:
        """Say also where the others were when a worker was lost."""
        lost = next((e for _, e in failures if isinstance(e, LostWorkerError)), None)
        if lost is not None:
            for rank, error in failures:
                op, where = getattr(error, "op", None), getattr(error, "location", None)
                if op is not None and not isinstance(error, LostWorkerError):
                    at = f" at {where}" if where else ""
                    lost.args = (f"{lost}; party {rank} was in {op}{at} then",)
                    break
        return super()._explain(failures)

    # -- values

    def lift(self, literal: Any) -> HostVar:
        """Give a literal to all parties, when they first use it."""
        return HostVar([Literal(frozen(array_of(literal)))] * self.world_size)

    def _fetch(self, rank: int, value: Any) -> Any:
        if isinstance(value, Literal):
            return value.array
        data = self._clients[rank].fetch("v1", "sessions", self.session, "values", value.name)
        return split_frame(data.data).value(value.kind)

    def close(self) -> None:
        """End the session, with all of its values. A second call does nothing."""
        with self._one_run:
            if self._closed:
                return
            self._closed = True
            self._keeper.stop()


class _Keeper:
    """What a driver leaves behind when it is dropped, and what ends with it: it knows no driver.

    Args:
        session: the session.
        clients: the workers.
        dropped: per worker the names of values that nobody has any more.

    Attributes:
        pool: threads that ask workers.
    """

    def __init__(
        self, session: str, clients: Sequence[WorkerClient], dropped: Sequence[deque[str]]
    ) -> None:
        self.pool = ThreadPoolExecutor(2 * len(clients) + 2, thread_name_prefix="mplang-http")
        self._session = session
        self._clients = clients
        self._dropped = dropped
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="mplang-keeper", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        """Renew the leases, and have values freed."""
        while not self._over.wait(TICK):
            for client, dropped in zip(self._clients, self._dropped, strict=True):
                with contextlib.suppress(RunError, RuntimeError):
                    self.pool.submit(self._renew, client, _drain(dropped))

    def _renew(self, client: WorkerClient, names: list[str]) -> None:
        path = ("v1", "sessions", self._session, "release")
        with contextlib.suppress(RunError):
            client.ask("POST", *path, body=[json.dumps(names).encode()])

    def stop(self) -> None:
        """End the session at the workers, as far as they answer."""
        if self._over.is_set():
            return
        self._over.set()
        ends = [self.pool.submit(self._end, client) for client in self._clients]
        concurrent.futures.wait(ends, timeout=5.0)
        self.pool.shutdown(wait=False)
        for client in self._clients:
            client.close()

    def _end(self, client: WorkerClient) -> None:
        with contextlib.suppress(RunError):
            client.ask("DELETE", "v1", "sessions", self._session)


def _parties(cluster: ClusterSpec, addresses: Sequence[str] | None) -> list[tuple[str, str]]:
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


def _drain(names: deque[str], most: int = 1000) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(IndexError):
        while len(found) < most:
            found.append(names.popleft())
    return found


def _outcome(future: Future[list[Any]]) -> list[Any] | BaseException:
    if not future.done():
        return AbortedError("it did not end in time")
    return future.exception() or future.result()

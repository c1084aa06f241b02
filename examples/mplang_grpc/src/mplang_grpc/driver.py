"""The host: what a backend gives is :meth:`_begin`, ``_submit``, ``_collect`` and ``_fetch``."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from typing import Any

from mplang_core import ClusterSpec, Mask, Program
from mplang_core.ext import (
    ConfigError,
    HostVar,
    Mode,
    ObservedHost,
    PartyState,
    RunError,
    outcome_of,
    to_bytes,
)
from mplang_trace import now

from mplang_grpc import wire
from mplang_grpc.comm import introduce
from mplang_grpc.rpc import Client
from mplang_grpc.worker import Party

GRACE = 2.0  # seconds that parties get to end a run


class Ref:
    """A value at one party, which frees it some time after this is dropped."""

    __slots__ = ("_dropped", "name")

    def __init__(self, name: str, dropped: deque[str]) -> None:
        self.name, self._dropped = name, dropped

    def __del__(self) -> None:
        self._dropped.append(self.name)


class SimpGrpcDriver(ObservedHost):
    """Has parties run programs, over gRPC.

    Args:
        cluster_spec: nodes with addresses, as ``grpc://127.0.0.1:9100``, are workers that run
            there; without, servers of this process stand for them, and share its memory.
        timeout: how many seconds a message, or what takes no program, takes at most.
        mode: see :class:`mplang_core.simp.SimpHost`.

    Raises:
        ConfigError: some nodes have addresses, others have none.

    Example:
        >>> import mplang_core as mp
        >>> with mp.connect("grpc", mp.ClusterSpec.simple(2)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))
        [array(7), array(7)]
    """

    def __init__(
        self, cluster_spec: ClusterSpec, *, timeout: float = 60.0, mode: Mode = "launch"
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._timeout = timeout
        self._generation = 0
        self._one_run = threading.Lock()
        addresses = [node.address.removeprefix("grpc://") for node in cluster_spec.nodes]
        if any(addresses) and not all(addresses):
            raise ConfigError(f"all nodes have addresses, or none has one; got {addresses}")
        self._parties = [] if all(addresses) else _start(self.world_size, timeout)
        addresses = [party.comm.server.address for party in self._parties] or addresses
        self._clients = [Client(rank, at) for rank, at in enumerate(addresses)]
        self._dropped: deque[str] = deque()
        self._stop = weakref.finalize(self, _stop, self.session, self._clients, self._parties)

    def submit(
        self, program: Program, args: Sequence[HostVar], step: Mask | None = None
    ) -> list[HostVar]:
        """Run a program; runs of other threads wait, so that none begins amid a failure."""
        with self._one_run:
            if not self._stop.alive:
                raise RunError("this host is closed")
            return super().submit(program, args, step)

    def _begin(self, run: str) -> None:
        """Have all parties accept messages, before one of them sends any."""
        names = [self._dropped.popleft() for _ in range(len(self._dropped))]
        begun = self._tell(wire.Begin(run, names))
        errors = [(rank, future.exception()) for rank, future in enumerate(begun)]
        failures = [(rank, error) for rank, error in errors if error is not None]
        if failures:
            self._tell(wire.End(run))
            raise self._explain(failures)

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[list[Any]]:
        recorder, dropped = self._recorder(rank, run), self._dropped
        session = f"{self.session}.{self._generation}"
        mine = [each.values[rank] for each in inputs]
        given: list[Any] = [x.name if isinstance(x, Ref) else wire.pack(x) for x in mine]
        job = wire.Run(run, session, to_bytes(program), given, recorder is not None)

        def read(ran: wire.Ran) -> list[Any]:
            if recorder is not None:
                recorder.take(ran.spans, ran.dropped, now() - ran.clock)
            return [name and Ref(name, dropped) for name in ran.results]

        return self._clients[rank].start(job, read=read)

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        try:
            wait(futures, return_when="FIRST_EXCEPTION")
        finally:
            if not all(future.done() and future.exception() is None for future in futures):
                # what kernels keep is out of step now
                self._generation += 1
                reason = "another party failed, or the host was interrupted"
                self._tell(wire.Abort(run, reason))
                wait(futures, timeout=GRACE)
            wait(self._tell(wire.End(run)), timeout=GRACE)
        return [outcome_of(future) for future in futures]

    def _tell(self, request: wire.Request) -> list[Future[Any]]:
        return [client.start(request, self._timeout) for client in self._clients]

    def _fetch(self, rank: int, value: Any) -> Any:
        if not isinstance(value, Ref):
            return value  # a literal, which is here
        request = wire.Fetch(self.session, value.name)
        return wire.unpack(self._clients[rank].ask(request, self._timeout))

    def progress(self) -> list[PartyState]:
        """Return what each party does now."""
        request = wire.State(self.session)
        return [client.ask(request, self._timeout) for client in self._clients]

    def close(self) -> None:
        """Have the parties free what belongs to this host. A second call does nothing."""
        with self._one_run:
            self._stop()


def _start(world_size: int, timeout: float) -> list[Party]:
    """Start a server per party in this process."""
    ranks = range(world_size)
    parties = [Party(rank, world_size, "127.0.0.1:0", timeout, insecure=True) for rank in ranks]
    introduce([party.comm for party in parties])
    return parties


def _stop(session: str, clients: Sequence[Client], parties: Sequence[Party]) -> None:
    wait([client.start(wire.Leave(session), GRACE) for client in clients])
    for client in clients:
        client.close()
    for party in parties:
        party.comm.shut()

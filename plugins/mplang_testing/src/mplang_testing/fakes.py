"""The smallest backend that keeps all promises: communicators in memory, a thread per party.

A frontend's kernels are tested on it, so that its author needs no backend; and it shows what a
backend has to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from mplang_simulator import CommunicatorBase, outcome_of

from mplang_core import Form, Program
from mplang_core.ext import (
    Cluster,
    DeviceKind,
    HostVar,
    Mode,
    PartyState,
    RunError,
    SimpHost,
    WorkerInterpreter,
    device_kinds,
    size_of,
)

GRACE = 2.0  # seconds that parties get to end once one has failed


class MemoryCommunicator(CommunicatorBase):
    """Hands values over within this process.

    Example:
        >>> a, b = MemoryCommunicator.connected(2, timeout=1.0)
        >>> b.open("run")
        >>> a.send(1, "run/1", True)
        >>> b.recv(0, "run/1")
        True
    """

    def __init__(self, rank: int, world_size: int, timeout: float) -> None:
        super().__init__(rank, world_size, timeout)
        self.peers: Sequence[MemoryCommunicator] = ()

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[MemoryCommunicator]:
        """Return one communicator per party."""
        comms = [cls(rank, world_size, timeout) for rank in range(world_size)]
        for comm in comms:
            comm.peers = comms
        return comms

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        self.peers[to_rank].deliver(self.rank, key, data)
        return size_of(data)

    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run, at all parties."""
        for peer in self.peers:
            peer.stop(run, reason)


class MemoryHost(SimpHost):
    """Runs all parties in this process.

    Args:
        cluster_spec: the parties and devices.
        timeout: how many seconds a party waits for a message.
        mode: see :class:`mplang_core.simp.SimpHost`.
        communicators: what connects the parties, one each; in memory by default.

    Example:
        >>> import mplang_core as mp
        >>> with MemoryHost(mp.ClusterSpec.simple(2)) as host:
        ...     mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))
        [array(7), array(7)]
    """

    def __init__(
        self,
        cluster_spec: Cluster,
        *,
        timeout: float = 20.0,
        mode: Mode = "standard",
        communicators: Sequence[CommunicatorBase] | None = None,
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._timeout = timeout
        self._comms = communicators or MemoryCommunicator.connected(self.world_size, timeout)
        self._closed = False
        self._start()

    def _start(self) -> None:
        """Begin with threads and workers that know nothing of a run before."""
        self._generation = getattr(self, "_generation", 0) + 1
        session = f"{self.session}.{self._generation}"
        self._workers = [
            WorkerInterpreter(comm, session=session, insecure=True, timeout=self._timeout)
            for comm in self._comms
        ]
        self._threads = [ThreadPoolExecutor(1) for _ in self._comms]  # one: runs keep their order

    def submit(self, program: Program, args: Sequence[HostVar]) -> list[HostVar]:
        """Have all parties run a program together."""
        if self._closed:
            raise RunError("this host is closed")
        return super().submit(program, args)

    def _begin(self, run: str) -> None:
        for comm in self._comms:
            comm.open(run)

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[Any]
    ) -> Future[list[Any]]:
        evaluate, recorder = self._workers[rank].evaluate, self._recorder(rank, run)
        return self._threads[rank].submit(evaluate, program, inputs, run, recorder=recorder)

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        wait(futures, return_when=FIRST_EXCEPTION)
        if any(future.done() and future.exception() for future in futures):
            wait(futures, timeout=GRACE)
            with self._order:
                self._stop()
                self._start()
        for comm in self._comms:
            comm.close(run)
        return [outcome_of(future) for future in futures]

    def progress(self) -> list[PartyState]:
        """Return what each party does now."""
        return [worker.state() for worker in self._workers]

    def _fetch(self, rank: int, value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else value

    def _stop(self) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False)

    def close(self) -> None:
        """End the threads."""
        self._closed = True
        self._stop()


@contextlib.contextmanager
def vault() -> Iterator[DeviceKind]:
    """Install, for a while, a kind of protected device that nobody's ops are meant for.

    Example:
        >>> with vault() as kind:
        ...     print(kind.name, kind.form.value)
        KIT_VAULT share
    """
    device_kinds.add(_VAULT.name, _VAULT, provider="mplang-core")
    try:
        yield _VAULT
    finally:
        device_kinds.remove(_VAULT.name)


_VAULT = DeviceKind(
    "KIT_VAULT",
    Form.SHARE,
    members=(2, None),
    unsupported_reasons=lambda meta, members: ["a vault runs nothing"],
    doc="A device that runs nothing.",
)

"""The backend ``inline``: all parties in this process, and a list of who sent what to whom.

It shows what a backend has to do: have each party evaluate a program, wait for all of them, and
fetch. The parties share memory, so there is no protection between them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from mplang_core import ClusterSpec, Mask, Program, TensorType
from mplang_core.ext import (
    CommunicatorBase,
    HostVar,
    Mode,
    ObservedHost,
    ObservedWorker,
    PartyState,
    RunError,
    check_fetchable,
    outcome_of,
    size_of,
)

GRACE = 2.0  # seconds that the others get to end once one has failed


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        sender: the rank that sent it.
        receiver: the rank that it was sent to.
        what: what was sent, in short; no value.
    """

    sender: int
    receiver: int
    what: str


class InlineCommunicator(CommunicatorBase):
    """Puts messages into the mailboxes of others, and writes each down.

    Example:
        >>> a, b = InlineCommunicator.connected(2, timeout=1.0)
        >>> b.open("run")
        >>> a.send(1, "run/0", np.zeros(3))
        >>> b.recv(0, "run/0"), a.sent
        (array([0., 0., 0.]), [Message(sender=0, receiver=1, what='f64[3]')])
    """

    def __init__(self, rank: int, world_size: int, timeout: float) -> None:
        super().__init__(rank, world_size, timeout)
        self.sent: list[Message] = []  # of all parties
        self._peers: Sequence[InlineCommunicator] = ()

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[InlineCommunicator]:
        """Return one communicator per party, all connected."""
        comms = [cls(rank, world_size, timeout) for rank in range(world_size)]
        for comm in comms:
            comm._peers, comm.sent = comms, comms[0].sent
        return comms

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        """Put a value into another party's mailbox; values are not copied."""
        self._peers[to_rank].deliver(self.rank, key, data)
        self.sent.append(Message(self.rank, to_rank, _short(data)))
        return size_of(data)

    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run, at all parties."""
        for peer in self._peers:
            peer.stop(run, reason)


class Inline(ObservedHost):
    """Runs all parties in this process, with a thread for each run of each party.

    What an engine sends on links of its own, as SPU does, is not in the list.

    Args:
        cluster_spec: the parties and devices.
        timeout: how many seconds a party waits for a message of another.
        mode: see :class:`mplang_core.simp.SimpHost`.

    Attributes:
        sent: all messages so far.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Inline(mp.ClusterSpec.simple(2)) as host:
        ...     x = mp.evaluate(host, lambda: mp.put("P1", mp.put("P0", [1, 2])))
        ...     mp.fetch(host, x), host.sent
        (array([1, 2]), [Message(sender=0, receiver=1, what='i64[2]')])
    """

    def __init__(
        self, cluster_spec: ClusterSpec, *, timeout: float = 60.0, mode: Mode = "standard"
    ) -> None:
        super().__init__(cluster_spec, mode)
        self._timeout = timeout
        self._comms = InlineCommunicator.connected(self.world_size, timeout)
        self.sent = self._comms[0].sent
        self._one_run = threading.Lock()
        self._closed = False
        self._generation = 0
        self._hire()

    def _hire(self) -> None:
        """Begin with workers that keep nothing of a run before."""
        self._generation += 1
        session = f"{self.session}.{self._generation}"
        self._workers = [
            ObservedWorker(comm, session=session, insecure=True, timeout=self._timeout)
            for comm in self._comms
        ]

    def submit(
        self, program: Program, args: Sequence[HostVar], step: Mask | None = None
    ) -> list[HostVar]:
        """Run a program; runs of other threads wait, as kernels may keep resources."""
        with self._one_run:
            if self._closed:
                raise RunError("this host is closed")
            return super().submit(program, args, step)

    def _begin(self, run: str) -> None:
        for comm in self._comms:
            comm.open(run)

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[HostVar], parties: Mask
    ) -> Future[list[Any]]:
        worker, future = self._workers[rank], Future[list[Any]]()
        recorder, mine = self._recorder(rank, run), [each.values[rank] for each in inputs]

        def evaluate() -> None:
            try:
                future.set_result(worker.evaluate(program, mine, run, recorder=recorder))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=evaluate, name=f"inline-P{rank}", daemon=True).start()
        return future

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        try:
            wait(futures, return_when="FIRST_EXCEPTION")
            wait(futures, timeout=GRACE)  # the one that failed has told the others
        finally:
            if not all(future.done() and future.exception() is None for future in futures):
                self._comms[0].abort(run, "another party failed, or the host was interrupted")
                self._hire()  # what kernels keep is out of step now
            for comm in self._comms:
                comm.close(run)
        return [outcome_of(future) for future in futures]

    def _fetch(self, rank: int, value: Any) -> Any:
        check_fetchable(value)
        return value.copy() if isinstance(value, np.ndarray) else value

    def progress(self) -> list[PartyState]:
        """Return what each party does now."""
        return [worker.state() for worker in self._workers]

    def close(self) -> None:
        """Take no more programs. A second call does nothing."""
        self._closed = True


def _short(data: Any) -> str:
    if isinstance(data, np.ndarray):
        return str(TensorType.of(data))
    return str(getattr(data, "type", type(data).__name__))

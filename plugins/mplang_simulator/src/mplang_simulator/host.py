"""The simulator's host."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from mplang_core.device import ClusterSpec
from mplang_core.errors import AbortedError, RunError
from mplang_core.ir import Program
from mplang_core.simp import SimpHost, WorkerInterpreter
from mplang_core.simp.host import Mode
from mplang_simulator.threads import PartyThread, ThreadCommunicator

__all__ = ["Simulator"]

GRACE = 2.0  # seconds that parties get to end once one of them has failed


class Simulator(SimpHost):
    """Runs all parties in this process, for development and tests.

    There is no protection between the parties here: they share memory. Protocols that are
    for debugging only are allowed.

    Args:
        cluster_spec: the parties and devices.
        timeout: how many seconds a party waits for a message of another.
        mode: see :class:`mplang_core.simp.SimpHost`.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        ...     x = mp.evaluate(sim, lambda: mp.constant(7))
        ...     mp.fetch(sim, x)
        [array(7), array(7), array(7)]
    """

    def __init__(
        self, cluster_spec: ClusterSpec, *, timeout: float = 60.0, mode: Mode = "standard"
    ) -> None:
        if timeout <= 0:
            raise ValueError(f"the timeout is a positive number of seconds, got {timeout}")
        super().__init__(cluster_spec, mode)
        self.timeout = timeout
        self._generation = 0
        self._closed = False
        self._parties = self._start()
        self._running: dict[str, _Parties] = {}

    def _start(self) -> _Parties:
        self._generation += 1
        return _Parties(self.world_size, self.timeout, f"{self.session}.{self._generation}")

    def _begin(self, run: str) -> None:
        if self._closed:
            raise RunError("this simulator is closed")
        self._parties.open(run)
        self._running[run] = self._parties

    def _submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[Any]
    ) -> Future[list[Any]]:
        return self._running[run].submit(rank, run, program, inputs)

    def _collect(
        self, run: str, futures: Sequence[Future[list[Any]]]
    ) -> list[list[Any] | BaseException]:
        parties = self._running.pop(run)
        try:
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        except BaseException:
            self._abandon(parties, run, "the host was interrupted")
            raise
        if any(future.done() and future.exception() for future in futures):
            concurrent.futures.wait(futures, timeout=min(GRACE, self.timeout))
            self._abandon(parties, run, "another party failed")
        else:
            parties.close(run)
        return [_outcome(future) for future in futures]

    def _abandon(self, parties: _Parties, run: str, reason: str) -> None:
        """Leave the threads of a failed run to end by themselves, and go on with new ones.

        What kernels share among parties (SPU's links, say) is out of step after a failure.
        """
        parties.end(run, reason)
        with self._order:
            if self._parties is parties and not self._closed:
                self._parties = self._start()

    def _fetch(self, rank: int, value: Any) -> Any:
        return value

    def close(self) -> None:
        """End the threads. A second call does nothing."""
        with self._order:
            if not self._closed:
                self._closed = True
                self._parties.stop()


class _Parties:
    """The workers of one generation: from one failure to the next."""

    def __init__(self, world_size: int, timeout: float, session: str) -> None:
        self._comms = ThreadCommunicator.connected(world_size, timeout)
        self._workers = [
            WorkerInterpreter(comm, session=session, insecure=True, timeout=timeout)
            for comm in self._comms
        ]
        self._threads = [PartyThread(f"mplang-P{comm.rank}") for comm in self._comms]
        self._broken: str | None = None

    def open(self, run: str) -> None:
        for comm in self._comms:
            comm.open(run)

    def close(self, run: str) -> None:
        for comm in self._comms:
            comm.close(run)

    def submit(
        self, rank: int, run: str, program: Program, inputs: Sequence[Any]
    ) -> Future[list[Any]]:
        def job() -> list[Any]:
            if self._broken is not None:
                self._comms[rank].abort(run, self._broken)
                raise AbortedError(f"party {rank} did not begin: {self._broken}; run it again")
            return self._workers[rank].evaluate(program, inputs, run)

        return self._threads[rank].submit(job)

    def end(self, run: str, reason: str) -> None:
        self._broken = f"a run before it failed ({reason})"
        self._comms[0].abort(run, reason)
        self.stop()

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()


def _outcome(future: Future[list[Any]]) -> list[Any] | BaseException:
    if not future.done():
        return AbortedError("it did not stop in time; its thread ends on its own")
    return future.exception() or future.result()

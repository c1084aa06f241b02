"""Threads of the parties, and the communicator between them."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from mplang_core import Mask
from mplang_core.ext import CommunicatorBase, size_of
from mplang_simulator.process_exit import awaited_at_exit

LEAD = 256  # comparisons that a party may be ahead of another one
NOBODY = Mask()
PAUSE = 64  # comparisons that all go on for, at the first time that nobody makes progress
PATIENCE = 0.005  # seconds in which the party whose turn it is compares something


class ThreadCommunicator(CommunicatorBase):
    """Communicator between threads: it delivers values without copying them."""

    setting = "timeout= of mp.Simulator"

    def __init__(self, rank: int, world_size: int, timeout: float) -> None:
        super().__init__(rank, world_size, timeout)
        self._peers: Sequence[ThreadCommunicator] = ()
        self._boards: dict[str, _Board] = {}  # of all parties, by run

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[ThreadCommunicator]:
        """Return one communicator per party, all connected.

        Args:
            world_size: the number of parties.
            timeout: seconds that a receiver waits.

        Returns:
            The communicators, in the order of ranks.
        """
        comms = [cls(rank, world_size, timeout) for rank in range(world_size)]
        for comm in comms:
            comm._peers, comm._boards = comms, comms[0]._boards
        return comms

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        self._peers[to_rank].deliver(self.rank, key, data)
        return size_of(data)

    def links_in_memory(self, run: str) -> bool:
        """Return whether no run is recorded: all parties are threads of this process."""
        return run not in self._recorders

    def compare(self, key: str, mine: bool | None) -> Mask:
        """Return the parties that are known to have another predicate than this one.

        To wake the other threads takes longer than all else, so this one waits only at each
        ``LEAD``-th comparison of a run, or if somebody records the run. Of two parties that
        disagree, the second one finds it.
        """
        name = key.partition("/")[0]
        run = self._run(key)
        board = self._boards.get(name) or self._boards.setdefault(name, _Board())
        run.compared += 1
        if run.compared % LEAD == 0 or not self.links_in_memory(name):
            board.end_turn(self.rank)
            return super().compare(key, mine)
        if run.failure is not None:
            raise run.failure()
        return board.put(key, self.rank, mine, self.world_size)

    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value from a party; it is no longer this one's turn."""
        board = self._boards.get(key.partition("/")[0])
        if board is not None:
            board.end_turn(self.rank, waits=True)
        return super().recv(from_rank, key)

    def _ask(self, run: str, rank: int) -> None:
        reached, waiting = {rank}, [rank]
        while waiting:  # along those that wait for another one, until somebody works
            others = self._peers[waiting.pop()].waits_for(run)
            if others is not None and not others:
                self.is_at_work(run, rank)
                return
            waiting.extend((others or set()) - reached)
            reached |= others or set()

    def close(self, run: str) -> None:
        """Accept no more messages of a run."""
        super().close(run)
        self._boards.pop(run, None)

    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run, at all parties.

        Args:
            run: the name of the run.
            reason: for the error message.
        """
        for peer in self._peers:
            peer.stop(run, reason)


class _Board:
    """The predicates of a run at parties that are ahead of others; and whose turn it is.

    Threads that call into engines hand Python's lock to each other at each call, which takes longer
    than the calls. So while predicates are compared, one party runs and the others sleep, until it
    is ``LEAD`` ahead or leaves the loop. It is not a rule: where nobody makes progress, for example
    while code is compiled, all go on for a while, and each time for longer; and nobody waits for a
    turn once somebody who had it waited for a message.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[int, bool | None]] = {}
        self._lock = threading.Lock()
        self._count = 0
        self._turn, self._next = threading.Lock(), threading.Lock()
        self._holder: int | None = None
        self._free_until: float = 0  # count of comparisons up to which nobody waits for a turn
        self._pause = PAUSE

    def put(self, key: str, rank: int, mine: bool | None, parties: int) -> Mask:
        """Add a predicate, and return who has another one, of those that came before."""
        self._take_turn(rank)
        with self._lock:
            self._count += 1
            found = self._open.setdefault(key, {})
            found[rank] = mine
            if len(found) == parties:
                del self._open[key]
            differing = NOBODY
            if len({mine, *found.values()}) > 1:
                ranks = (rank for rank, other in found.items() if other is not mine)
                differing = Mask.from_ranks(ranks)
        if not mine:
            self.end_turn(rank)
        return differing

    def _take_turn(self, rank: int) -> None:
        if self._holder == rank or self._count < self._free_until:
            return
        with self._next:  # one thread looks for progress, as each look stops the one that runs
            seen = -1
            while self._count >= self._free_until:
                if self._turn.acquire(timeout=PATIENCE):
                    self._holder = rank
                    return
                if seen == self._count:
                    self._free_until = max(self._free_until, self._count + self._pause)
                    self._pause *= 2
                seen = self._count

    def end_turn(self, rank: int, *, waits: bool = False) -> None:
        """Yield to another party, if it is this one's turn."""
        if self._holder == rank:
            if waits:
                self._free_until = math.inf
            self._holder = None
            self._turn.release()


class PartyThread:
    """Daemon thread that runs one party's jobs in order."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        """Queue a job; return its future."""
        future: Future[Any] = Future()
        self._jobs.put((job, future))
        return future

    def stop(self) -> None:
        """Stop the thread after the queued jobs."""
        self._jobs.put(None)

    def join(self, timeout: float) -> bool:
        """Wait for the thread to end; return whether it did."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            with awaited_at_exit():
                try:
                    future.set_result(job())
                except BaseException as error:
                    future.set_exception(error)
            del item, job, future  # release the job's values while the thread waits

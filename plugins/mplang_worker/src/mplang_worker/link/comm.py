"""Communicator of a session, over the worker's shared links."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError, CommError, CommunicatorBase, Failure, RunError
from mplang_worker.link.frames import Kind
from mplang_worker.link.linked_communicator import LinkedCommunicator
from mplang_worker.link.links import Links
from mplang_worker.link.lost_link import LostLink
from mplang_worker.wire.opening import Opening


class HttpCommunicator(LinkedCommunicator):
    """Communicator of a session, whose parties agree on each run before they send.

    Args:
        rank: rank of this party.
        names: names of the parties' workers, by rank.
        links: links of this worker.
        timeout: timeout of one ``recv``, in seconds.

    Attributes:
        on_failure: called with the key of a run that fails here, and why.
    """

    def __init__(self, rank: int, names: Sequence[str], links: Links, timeout: float) -> None:
        super().__init__(rank, names, links, timeout)
        self.on_failure: Callable[[str, Failure], None] = _ignore
        # per run, the parties that have opened it, with what they were shown
        self._joined: dict[str, dict[int, Opening | None]] = {}
        self._left: dict[str, set[int]] = {}  # per run, the parties that have closed it
        self._permits: dict[str, set[int]] = {}  # per run, the parties that permit it
        self._executed = ""  # the run whose turn it is here; others are queued

    def open(self, run: str, opening: Opening | None = None) -> None:
        """Open a run: accept its messages, and notify the peers.

        Args:
            run: key of the run.
            opening: what this worker was shown of it; then the peers are notified by
                :meth:`announce`, when this worker is ready to run it.
        """
        with self._lock:
            if run in self._runs:
                return
            CommunicatorBase.open(self, run)
            self._joined[run], self._left[run] = {self.rank: opening}, set()
            self._permits[run] = set()
        try:
            self._links.open_run(run, self, opening)
        except MPLangError:
            CommunicatorBase.close(self, run)
            del self._joined[run], self._left[run], self._permits[run]
            raise
        gone = []
        for name in self.peers:
            link = self._links.get(name)
            if link is None:
                self.peer_lost(name, run, LostLink.ABSENT)
                continue
            for other, shown in list(link.runs.items()):
                if other == run or (shown and opening and shown.run == opening.run):
                    self.peer_opened(name, run, shown)
            ended = link.ended.get(opening.run) if opening is not None else None
            if ended is not None:  # it has refused the run, or failed, before this party came
                shown, why = ended
                self.peer_opened(name, run, shown)
                gone.append((self.peers[name], f": {why}" if why else ""))
        for rank, why in gone:  # after all were asked for what they were shown, which tells more
            self.stop(run, f"party {rank} ended this run before it began here{why}")
        if opening is None:
            self._links.announce(self.peers, run, b"")

    def begin(self, run: str) -> None:
        """Begin to execute an open run, which may have been queued for long.

        Until :meth:`finish` this party counts as at work in the runs that are queued behind it.
        """
        self._executed = run
        with self._lock:
            if run in self._runs:
                self._runs[run].ends = time.monotonic() + self.longest

    def finish(self) -> None:
        """End the execution of a run: it is the turn of the next."""
        self._executed = ""

    def waits_for(self, run: str) -> set[int] | None:
        """Return the parties that this one waits for in a run, or in the one that it queues behind.

        Args:
            run: key of the run.
        """
        with self._lock:
            executed, queued = self._executed, self._runs.get(run)
            if not executed or executed == run or queued is None or queued.failure is not None:
                return super().waits_for(run)
            return super().waits_for(executed) or set()

    def announce(self, run: str, opening: Opening) -> None:
        """Send the peers what this worker was shown of an open run.

        Args:
            run: key of the run.
            opening: what this worker was shown, and what it tells of its inputs.

        Raises:
            WireError: the opening is too large.
        """
        with self._lock:
            if run in self._joined:
                self._joined[run][self.rank] = opening
        self._links.announce(self.peers, run, opening.write())

    def certificates(self) -> list[tuple[str, str]]:
        """Return by rank the name of each party and the SHA-256 of its certificate."""
        found = []
        for rank, name in enumerate(self.names):
            end = self._links if rank == self.rank else self._links.get(name)
            found.append((name, "" if end is None else end.certificate))
        return found

    def openings(self, run: str, ranks: Iterable[int]) -> dict[int, Opening]:
        """Wait until parties have opened a run, and return what each was shown.

        Raises:
            CommError: one of them does not open it in time, or was shown another run.
        """
        for rank in ranks:
            self._await_peer(rank, run, even_after=True)
        with self._lock:
            joined = self._joined.get(run, {})  # none if it was cancelled meanwhile
            return {rank: each for rank in ranks if (each := joined.get(rank)) is not None}

    def permit(self, run: str, head: bytes = b"") -> None:
        """Send the peers that this party permits a run.

        Args:
            run: key of the run.
            head: what its gate tells of its log, once the run is on record.
        """
        self._links.send_control(self.peers, Kind.HEAD, run, head)

    def await_permits(self, run: str, ranks: Iterable[int]) -> None:
        """Wait until parties permit a run.

        Raises:
            CommError: one of them does not in time.
            RunError: one of them refuses it, or has failed.
        """
        for rank in ranks:
            self._await_among(rank, run, f"{run}/permit", self._permits)

    def close(self, run: str) -> None:
        """Close a run, and wait until the peers know."""
        with self._lock:
            known = run in self._runs
            CommunicatorBase.close(self, run)
            self._inquiries.pop(run, None)
            self._joined.pop(run, None)
            self._permits.pop(run, None)
            left = self._left.pop(run, set())
        if known:
            waiting = [name for name, rank in self.peers.items() if rank not in left]
            self._links.close_run(run, self.peers, waiting)

    def abort(self, run: str, reason: str) -> None:
        """Abort a run at all parties.

        Args:
            run: name of the run.
            reason: text for the error that pending operations raise.
        """
        self.stop(run, reason)
        self._links.abort(self.peers, run, reason)

    def _end(self, run: str, kind: type[RunError], text: str) -> None:
        super()._end(run, kind, text)
        self.on_failure(run, Failure(kind.__name__, text))

    def _await_peer(self, rank: int, key: str, *, even_after: bool = False) -> None:
        """Wait until a party has opened a run; ``even_after`` it has closed it again."""
        run = key.partition("/")[0]
        if self._is_there(rank, run):
            return
        self._await_among(rank, run, key, self._joined, even_after=even_after)

    def _await_among(
        self,
        rank: int,
        run: str,
        key: str,
        there: Mapping[str, Collection[int]],
        *,
        even_after: bool = True,
    ) -> None:
        """Wait until a party is among those of a run; ``even_after`` it has closed it again."""
        began = time.monotonic()
        asks = began + self.timeout / 2
        while True:
            now = time.monotonic()
            with self._lock:
                found = self._run(key)
                if found.failure is not None:
                    raise found.failure()
                known = max(began, found.at_work.get(rank, began))
                deadline = min(known + self.timeout, found.ends)
                joined, left = rank in there[run], rank in self._left[run]
                if joined and (even_after or not left):
                    return
                if left:
                    raise CommError(f"party {rank} has left the run")
                if now >= deadline:
                    raise CommError(
                        f"party {self.rank} waited {self.timeout:g} s for party {rank} to begin; "
                        f"{self.setting} sets the limit",
                        code="L002",
                    )
                waiter = found.waiter((rank, run))
            if now >= asks:  # it may be at work in a run before this one
                self._ask(run, rank)
                asks = now + self.timeout / 4
            try:
                self._pause(waiter, rank, min(deadline, asks))
            finally:
                with self._lock:
                    found.leave((rank, run), waiter)

    def _is_there(self, rank: int, run: str) -> bool:
        """Return whether a party is in a run that goes on; without the lock, as it is often so."""
        found = self._runs.get(run)
        if found is None or found.failure is not None:
            return False
        return rank in self._joined.get(run, ()) and rank not in self._left.get(run, ())

    def _notice(self, run: str, rank: int) -> None:
        """Wake threads that wait for a party to open the run; no message has that key."""
        for waiter in self._runs[run].waiters.get((rank, run), ()):
            waiter.wake()

    # -- events of links

    def peer_opened(self, peer: str, run: str, opening: Opening | None) -> None:
        """Record that a peer has opened a run, or fail the run if the peer was shown another one.

        Args:
            peer: name of the peer's worker.
            run: key of the run, here.
            opening: what the peer was shown.
        """
        with self._lock:
            if peer not in self.peers or run not in self._joined:
                return
            rank, mine = self.peers[peer], self._joined[run][self.rank]
            differing = mine.differences(opening) if mine and opening else ""
            if not differing:
                self._joined[run][rank] = opening
                self._notice(run, rank)
                return
        self._end(
            run,
            AdmissionError,
            f"party {rank} ({peer}) was shown {differing} than party {self.rank} "
            f"({self.names[self.rank]}) in this run; it is refused, since all parties run one "
            "program, on the same public inputs, with the same parties and settings",
        )

    def peer_permits(self, peer: str, run: str) -> None:
        """Record that a peer permits a run.

        Args:
            peer: name of the peer's worker.
            run: key of the run.
        """
        self._mark(self._permits, peer, run)

    def peer_closed(self, peer: str, run: str) -> None:
        """Record that a peer has closed a run.

        Args:
            peer: name of the peer's worker.
            run: name of the run.
        """
        self._mark(self._left, peer, run)

    def _mark(self, marked: Mapping[str, set[int]], peer: str, run: str) -> None:
        with self._lock:
            if peer in self.peers and run in marked:
                marked[run].add(self.peers[peer])
                self._notice(run, self.peers[peer])

    def peer_lost(self, peer: str, run: str, reason: LostLink) -> None:
        """Fail a run whose link to a peer is lost, unless the peer has closed the run.

        Args:
            peer: name of the peer's worker.
            run: name of the run.
            reason: why the link is lost.
        """
        with self._lock:
            done = self.peers[peer] in self._left.get(run, ())
        if not done:
            super().peer_lost(peer, run, reason)


def _ignore(run: str, failure: Failure) -> None:
    """Take no notice of a run's failure."""

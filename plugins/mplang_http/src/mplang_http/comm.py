"""Communicator of a session, over the worker's shared links."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

from mplang_simulator import CommunicatorBase, Waiter

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError, CommError, RunError, WireError
from mplang_http.connection import Connection
from mplang_http.links import Links
from mplang_http.opening import Opening
from mplang_http.values import Packed, pack


class HttpCommunicator(CommunicatorBase):
    """Communicator that sends on links in the calling thread, once the peer has opened the run.

    Args:
        rank: rank of this party.
        names: names of the parties' workers, by rank.
        links: links of this worker.
        timeout: timeout of one ``recv``, in seconds.

    Attributes:
        peers: ranks of the other parties, by the names of their workers.
    """

    def __init__(self, rank: int, names: Sequence[str], links: Links, timeout: float) -> None:
        super().__init__(rank, len(names), timeout)
        self.names = tuple(names)
        self.peers = {name: i for i, name in enumerate(names) if i != rank}
        self._others = {rank: name for name, rank in self.peers.items()}
        self._links = links
        # per run, the parties that have opened it, with what they were shown
        self._joined: dict[str, dict[int, Opening | None]] = {}
        self._left: dict[str, set[int]] = {}  # per run, the parties that have closed it

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[HttpCommunicator]:
        """Return one communicator per party, linked by TCP connections within this process.

        Args:
            world_size: the number of parties.
            timeout: seconds that a receiver waits.
        """
        names = [f"node{i}" for i in range(world_size)]
        tables = [Links(name, max_message=1 << 30) for name in names]
        with socket.create_server(("127.0.0.1", 0)) as server:
            for a, b in itertools.combinations(range(world_size), 2):
                near = socket.create_connection(server.getsockname())
                far, _ = server.accept()
                tables[a].add(Connection(near, timeout), names[b])
                tables[b].add(Connection(far, timeout), names[a])
        return [cls(rank, names, links, timeout) for rank, links in enumerate(tables)]

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
            super().open(run)
            self._joined[run], self._left[run] = {self.rank: opening}, set()
        try:
            self._links.open_run(run, self, opening)
        except MPLangError:
            super().close(run)
            del self._joined[run], self._left[run]
            raise
        gone = []
        for name in self.peers:
            link = self._links.get(name)
            if link is None:
                self.peer_lost(name, run, "there is none")
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

    def announce(self, run: str, opening: Opening) -> None:
        """Tell the peers what this worker was shown of an open run.

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

    def close(self, run: str) -> None:
        """Close a run, and wait until the peers know."""
        with self._lock:
            known = run in self._runs
            super().close(run)
            self._joined.pop(run, None)
            left = self._left.pop(run, set())
        if known:
            waiting = [name for name, rank in self.peers.items() if rank not in left]
            self._links.close_run(run, self.peers, waiting)

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        """Send a value, after the peer has opened the run.

        What depends on the value is a RunError: the failure of an op, not of the transport.
        """
        try:
            head, buffers = pack(data)
        except WireError as error:
            raise RunError(f"party {self.rank} cannot send it: {error}") from error
        self._await_peer(to_rank, key)
        link = self._links.get(self.names[to_rank])
        if link is None:
            raise CommError(f"party {self.rank} has lost its link to party {to_rank}")
        try:
            return link.send(key, head, buffers)
        except WireError as error:
            raise RunError(f"party {self.rank} cannot send it: {error}") from error
        except OSError as error:
            raise CommError(f"party {self.rank} has lost its link to party {to_rank}") from error

    def _pause(self, waiter: Waiter, from_rank: int, deadline: float) -> None:
        """Read what the peer sends, or wait while another thread does."""
        link = self._links.get(self._others.get(from_rank, ""))
        if link is None:
            waiter.sleep(deadline)
        else:
            link.wait(waiter, deadline)

    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value, and decode it.

        Args:
            from_rank: rank of the sender.
            key: key of the message.

        Returns:
            The value.

        Raises:
            CommError: the message does not arrive, or cannot be decoded.
        """
        return self._decode(super().recv(from_rank, key), from_rank)

    def peek_message(self, from_rank: int, key: str) -> Any | None:
        """Return a message without removing it; ``None`` if it has not arrived.

        Args:
            from_rank: rank of the sender.
            key: key of the message.

        Raises:
            CommError: the message cannot be decoded.
        """
        return self._decode(super().peek_message(from_rank, key), from_rank)

    def _decode(self, found: Any, from_rank: int) -> Any:
        if not isinstance(found, Packed):
            return found
        try:
            return found.value()
        except WireError as error:
            raise CommError(
                f"party {self.rank} cannot read what party {from_rank} sent; the reason is in the "
                f"log of party {self.rank}, at log_level: debug"
            ) from error

    def abort(self, run: str, reason: str) -> None:
        """Abort a run at all parties.

        Args:
            run: name of the run.
            reason: text for the error that pending operations raise.
        """
        self.stop(run, reason)
        self._links.abort(self.peers, run, reason)

    def _await_peer(self, rank: int, key: str, *, even_after: bool = False) -> None:
        """Wait until a party has opened a run; ``even_after`` it has closed it again."""
        run = key.partition("/")[0]
        if self._is_there(rank, run):
            return
        deadline = time.monotonic() + self.timeout
        while True:
            with self._lock:
                found = self._run(key)
                if found.failure is not None:
                    raise found.failure()
                joined, left = rank in self._joined[run], rank in self._left[run]
                if joined and (even_after or not left):
                    return
                if left:
                    raise CommError(f"party {rank} has left the run")
                if time.monotonic() >= deadline:
                    raise CommError(
                        f"party {self.rank} waited {self.timeout:g} s for party {rank} to begin"
                    )
                waiter = found.waiter((rank, run))
            try:
                self._pause(waiter, rank, deadline)
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
        """Have those look again who wait for a party to begin; no message has that key."""
        for waiter in self._runs[run].waiters.get((rank, run), ()):
            waiter.wake()

    # -- events of links

    def receive_value(self, peer: str, key: str, packed: Packed) -> None:
        """Deliver a value; drop it if it is late or from no peer.

        Args:
            peer: name of the sender's worker.
            key: key of the message.
            packed: the encoded value.
        """
        rank = self.peers.get(peer)
        if rank is None:
            return
        try:  # noqa: SIM105 (half the time of a context manager)
            self.deliver(rank, key, packed)
        except CommError:
            pass

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

    def peer_closed(self, peer: str, run: str) -> None:
        """Record that a peer has closed a run.

        Args:
            peer: name of the peer's worker.
            run: name of the run.
        """
        with self._lock:
            if peer in self.peers and run in self._left:
                self._left[run].add(self.peers[peer])
                self._notice(run, self.peers[peer])

    def peer_lost(self, peer: str, run: str, reason: str) -> None:
        """Fail a run whose link to a peer is lost, unless the peer has closed the run.

        Args:
            peer: name of the peer's worker.
            run: name of the run.
            reason: why the link is lost.
        """
        rank = self.peers[peer]
        with self._lock:
            done = rank in self._left.get(run, ())
        if not done:
            self.lose(run, f"has lost its link to party {rank} ({peer}): {reason}")

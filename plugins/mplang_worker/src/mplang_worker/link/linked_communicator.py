"""Communicator over the links of a session, without agreement on runs."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Sequence
from typing import Any, Self

from mplang_http.ext import Packed, pack

from mplang_core.ext import CommError, CommunicatorBase, RunError, Waiter, WireError
from mplang_worker.link.connection import Connection
from mplang_worker.link.frames import Kind
from mplang_worker.link.inquiries import Inquiries, run_of
from mplang_worker.link.links import Links
from mplang_worker.link.lost_link import LostLink
from mplang_worker.wire.opening import Opening

SETTING = "timeouts.message of workers, or timeout= of mp.connect,"
INTERVAL = 1.0  # seconds between two answers to a peer that asks whether this party is at work


class LinkedCommunicator(CommunicatorBase):
    """Communicator that sends on links in the calling thread.

    Args:
        rank: rank of this party.
        names: names of the parties' workers, by rank.
        links: links of this process.
        timeout: timeout of one ``recv``, in seconds.

    Attributes:
        peers: ranks of the other parties, by the names of their workers.
        far: what is at the far end of a link, in errors.
    """

    far = "party"
    setting = SETTING

    def __init__(self, rank: int, names: Sequence[str], links: Links, timeout: float) -> None:
        super().__init__(rank, len(names), timeout)
        self.names = tuple(names)
        self.peers = {name: i for i, name in enumerate(names) if i != rank}
        self._others = {rank: name for name, rank in self.peers.items()}
        self._links = links
        self._inquiries: dict[str, Inquiries] = {}  # by run

    def open(self, run: str) -> None:
        """Open a run: accept its messages."""
        super().open(run)
        self._links.open_run(run, self)
        for name in self.peers:
            if self._links.get(name) is None:
                self.peer_lost(name, run, LostLink.ABSENT)

    def close(self, run: str) -> None:
        """Close a run: drop its messages."""
        super().close(run)
        self._inquiries.pop(run, None)
        self._links.close_run(run)

    def abort(self, run: str, reason: str) -> None:
        """Abort a run here; engines tell the other parties."""
        self.stop(run, reason)

    @classmethod
    def connected(cls, world_size: int, timeout: float) -> list[Self]:
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

    def _send(self, to_rank: int, key: str, data: Any) -> int:
        """Send a value, once the peer accepts messages of its run.

        What depends on the value is a RunError: the failure of an op, not of the transport.
        """
        try:
            head, buffers = pack(data)
        except WireError as error:
            raise RunError(f"party {self.rank} cannot send it: {error}", code="I004") from error
        self._await_peer(to_rank, key)
        link = self._links.get(self.names[to_rank])
        if link is None:
            raise CommError(f"party {self.rank} has lost its link to party {to_rank}")
        try:
            return link.send(key, head, buffers)
        except WireError as error:
            raise RunError(f"party {self.rank} cannot send it: {error}", code="I004") from error
        except OSError as error:
            raise CommError(f"party {self.rank} has lost its link to party {to_rank}") from error

    def _await_peer(self, rank: int, key: str) -> None:
        """Wait until a party accepts messages of a run; here it does once the run is open.

        Raises:
            CommError: it does not, or the run has failed.
        """
        failure = self._run(key).failure
        if failure is not None:
            raise failure()

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
                f"log of party {self.rank}, at log_level: debug",
                code="L005",
            ) from error

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

    def peer_lost(self, peer: str, run: str, reason: LostLink) -> None:
        """Fail a run whose link to a peer is lost.

        Args:
            peer: name of the peer's worker.
            run: name of the run.
            reason: why the link is lost.
        """
        rank = self.peers[peer]
        self.lose(run, f"has lost its link to {self.far} {rank} ({peer}): {reason}")

    # -- who is at work

    def _ask(self, run: str, rank: int) -> None:
        with self._lock:
            if run not in self._runs or rank not in self._others:
                return
            name = self._inquiries_of(run).make(rank)
        if name:
            self._links.tell(self._others[rank], Kind.CLOSE, name)

    def _inquiries_of(self, run: str) -> Inquiries:
        if run not in self._inquiries:
            self._inquiries[run] = Inquiries(run, min(INTERVAL, self.timeout / 8))
        return self._inquiries[run]

    def inquired(self, peer: str, name: str) -> bool:
        """Return whether this party is at work in a run; if it waits for others, ask them.

        Args:
            peer: name of the worker that asks.
            name: name of its inquiry.
        """
        run = run_of(name)
        with self._lock:
            if run not in self._runs or peer not in self.peers:
                return False
            waits_for = self.waits_for(run)
            confirmed = self._inquiries_of(run).take(self.peers[peer], name, waits_for)
        for rank in waits_for or ():
            self._ask(run, rank)
        return confirmed

    def confirmed(self, peer: str, name: str) -> None:
        """Take notice that a peer is at work in a run, and tell those that have asked.

        Args:
            peer: name of the peer's worker.
            name: name of the inquiry that it confirms.
        """
        run = run_of(name)
        with self._lock:
            inquiries, rank = self._inquiries.get(run), self.peers.get(peer)
            if inquiries is None or rank is None:
                return
            confirmed = inquiries.confirm(rank, name)
            if confirmed is None:
                return
            self.is_at_work(run, rank)
        for other, asked in confirmed.items():
            self._links.tell(self._others[other], Kind.CLOSED, asked)

    # what engines tell each other of runs

    def peer_opened(self, peer: str, run: str, opening: Opening | None) -> None:
        """Take notice that a peer has opened a run."""

    def peer_closed(self, peer: str, run: str) -> None:
        """Take notice that a peer has closed a run."""

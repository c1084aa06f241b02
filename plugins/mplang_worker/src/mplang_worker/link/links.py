"""Links of a worker, and the runs that use them."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from mplang_http.ext import Packed

from mplang_core.ext import CommError, Waiter
from mplang_worker.link.connection import Connection
from mplang_worker.link.frames import Kind
from mplang_worker.link.inquiries import run_of
from mplang_worker.link.link import Link
from mplang_worker.link.lost_link import LostLink
from mplang_worker.wire.opening import Opening

CLOSE_TIMEOUT = 1.0  # seconds that a peer has to confirm the end of a run
log = logging.getLogger("mplang.http.link")


class Links:
    """Links of one session at one party, at most one per peer; dispatches their messages.

    Of each pair of parties, the one whose name sorts first connects to the other.

    Args:
        name: name of this party.
        max_message: maximum size of a message in bytes.
        max_waiting: maximum size in bytes of a peer's messages that no program has received yet.
        agreed: see below.

    Attributes:
        certificate: SHA-256 of this party's certificate, in hex; empty without TLS.
        agreed: whether peers open runs on these links before they send, as engines do.
        on_head: called with the name of a peer, that of a run at all parties, and what the peer's
            gate has signed of its log; also after the run was closed here.
    """

    def __init__(
        self, name: str, *, max_message: int, max_waiting: int = 1 << 40, agreed: bool = True
    ) -> None:
        self.name = name
        self.agreed = agreed
        self.certificate = ""
        self.on_head: Callable[[str, str, bytes], None] = _ignore
        self._max_message = max_message
        self._max_waiting = max_waiting
        self._links: dict[str, Link] = {}
        self._runs: dict[str, Any] = {}
        self._names: dict[str, str] = {}  # the keys of those with an opening, by its name
        # per run that this worker has closed, the peers that do not know, and who waits for them
        self._unconfirmed: dict[str, tuple[set[str], Waiter]] = {}
        self._changed = threading.Condition()

    def add(self, connection: Connection, peer: str) -> None:
        """Add a link; it replaces an open link to the same peer.

        Args:
            connection: the connection after the handshake.
            peer: name of the other party.
        """
        link = Link(connection, peer, self, self._max_message, self._max_waiting)
        with self._changed:
            before = self._links.get(peer)
            self._links[peer] = link
            self._changed.notify_all()
        if before is not None:
            before.close(LostLink.CONNECTED_ANEW)
        log.info("there is a link to %s", peer)
        link.start()

    def drop(self, peer: str, reason: LostLink) -> None:
        """Close the link to a peer, if there is one."""
        link = self._links.get(peer)
        if link is not None:
            link.close(reason)

    def wait(self, peers: Iterable[str], timeout: float) -> None:
        """Wait until there is a link to each peer.

        Args:
            peers: names of the peers.
            timeout: timeout in seconds.

        Raises:
            CommError: there is none in time.
        """
        wanted = set(peers)
        with self._changed:
            self._changed.wait_for(lambda: wanted <= self._links.keys(), timeout)
            missing = sorted(wanted - self._links.keys())
        if missing:
            raise CommError(
                f"worker {self.name} waited {timeout:g} s for {', '.join(missing)} to connect; "
                "is it running?",
                code="L004",
            )

    def get(self, peer: str) -> Link | None:
        """Return the link to a worker, or ``None``."""
        return self._links.get(peer)

    def all(self) -> list[Link]:
        """Return all links."""
        with self._changed:
            return list(self._links.values())

    def close(self) -> None:
        """Close all links."""
        for link in self.all():
            link.close(LostLink.SHUTDOWN)

    # -- runs

    def open_run(self, run: str, communicator: Any, opening: Opening | None = None) -> None:
        """Dispatch messages of a run to a communicator; its peers are told by :meth:`announce`.

        Args:
            run: key of the run.
            communicator: receiver of the run's messages.
            opening: what this worker was shown of the run.

        Raises:
            CommError: there is a run of that name already.
        """
        name = run if opening is None else opening.run
        with self._changed:
            if run in self._runs or name in self._names:
                raise CommError(
                    f"worker {self.name} is in another run {name!r} already", code="L004"
                )
            self._runs[run] = communicator
            self._names[name] = run

    def announce(self, peers: Iterable[str], run: str, opening: bytes) -> None:
        """Send the peers that this worker has opened a run, and what it was shown of it.

        Args:
            peers: names of the peers.
            run: key of the run.
            opening: what this worker was shown of it, encoded.
        """
        self.send_control(peers, Kind.OPEN, run, opening)

    def close_run(self, run: str, peers: Iterable[str] = (), expected: Iterable[str] = ()) -> None:
        """Stop dispatching messages of a run; wait up to ``CLOSE_TIMEOUT`` until the peers know.

        Args:
            run: name of the run.
            peers: workers to notify.
            expected: those of them that have not closed the run.
        """
        with self._changed:
            if self._runs.pop(run, None) is None:
                return
            self._names = {name: each for name, each in self._names.items() if each != run}
            unconfirmed = self._expect(run, expected)
        self.send_control(peers, Kind.CLOSE, run)
        self._await_confirmations(run, *unconfirmed, CLOSE_TIMEOUT)

    def probe(self, peers: Collection[str], timeout: float) -> None:
        """Drop the links to peers that do not answer: a link may have ended at the peer alone.

        Args:
            peers: names of the peers.
            timeout: seconds that they have together.
        """
        run = f"probe {secrets.token_hex(16)}"  # a run that nobody has; its end is confirmed
        with self._changed:
            silent, waiter = self._expect(run, peers)
        self.send_control(peers, Kind.CLOSE, run)
        self._await_confirmations(run, silent, waiter, timeout)
        for peer in silent:
            self.drop(peer, LostLink.IS_SILENT)

    def _expect(self, run: str, peers: Iterable[str]) -> tuple[set[str], Waiter]:
        """Return those of the peers that are linked and have not confirmed, and who waits."""
        found = {peer for peer in peers if peer in self._links}, Waiter()
        self._unconfirmed[run] = found
        return found

    def _await_confirmations(
        self, run: str, open_: set[str], waiter: Waiter, timeout: float
    ) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            waiter.woken = False
            with self._changed:
                link = next((link for peer in open_ if (link := self._links.get(peer))), None)
            if link is None:  # those that are lost do not count
                break
            link.wait(waiter, deadline)
        with self._changed:
            del self._unconfirmed[run]

    def send_control(self, peers: Iterable[str], kind: Kind, run: str, head: bytes = b"") -> None:
        """Send a control frame of a run to all peers that are linked.

        Args:
            peers: names of the peers.
            kind: kind of the frame.
            run: name of the run.
            head: opening of the run.
        """
        for peer in peers:
            link = self._links.get(peer)
            if link is not None:
                with contextlib.suppress(OSError):
                    link.send_control(kind, run, head)

    def tell(self, peer: str, kind: Kind, name: str) -> None:
        """Send a peer an inquiry, or the confirmation of one, without blocking.

        Args:
            peer: name of the peer.
            kind: ``CLOSE`` or ``CLOSED``.
            name: name of the inquiry.
        """
        link = self._links.get(peer)
        if link is not None:
            link.queue_control(kind, name)

    def abort(self, peers: Iterable[str], run: str, reason: str) -> None:
        """Notify peers that a run has failed, without blocking.

        Args:
            peers: names of the peers.
            run: name of the run.
            reason: text for the peers' errors.
        """
        for peer in peers:
            link = self._links.get(peer)
            if link is not None:
                link.queue_control(Kind.ABORT, run, reason)

    def _confirm(self, run: str, peer: str) -> bool:
        """Record that a peer knows that this worker has closed a run; return whether it did not."""
        open_, waiter = self._unconfirmed.get(run, (set(), None))
        if waiter is None or peer not in open_:
            return False
        open_.discard(peer)
        waiter.wake()
        return True

    # -- events of links

    def message(self, link: Link, key: str, packed: Packed) -> None:
        """Dispatch a value to the communicator of its run."""
        communicator = self._runs.get(key.partition("/")[0])
        if communicator is not None:
            communicator.receive_value(link.peer, key, packed)

    def opened(self, link: Link, run: str, opening: Opening | None) -> None:
        """Forward that a peer has opened a run, or that it was shown another one of that name."""
        here = run if opening is None else self._names.get(opening.run, run)
        communicator = self._runs.get(here)
        if communicator is not None:
            communicator.peer_opened(link.peer, here, opening)

    def headed(self, link: Link, run: str, name: str, head: bytes) -> None:
        """Forward that a peer permits a run, and what its gate tells of its log."""
        communicator = self._runs.get(run)
        if communicator is not None:
            communicator.peer_permits(link.peer, run)
        if head:
            self.on_head(link.peer, name, head)

    def closed(self, link: Link, run: str) -> bool:
        """Forward that a peer has closed a run, or asks whether this party is at work in one.

        It waits for no answer if this worker has closed the run as well, and told it so.
        """
        inquired = run_of(run)
        if inquired:
            communicator = self._runs.get(inquired)
            return communicator is not None and bool(communicator.inquired(link.peer, run))
        with self._changed:
            if self._confirm(run, link.peer):  # it sends no more messages
                return False
        communicator = self._runs.get(run)
        if communicator is not None:
            communicator.peer_closed(link.peer, run)
        return True

    def acknowledged(self, link: Link, run: str) -> None:
        """Record that a peer knows that this worker has closed a run, or is at work in one."""
        communicator = self._runs.get(run_of(run))
        if communicator is not None:
            communicator.confirmed(link.peer, run)
            return
        with self._changed:
            self._confirm(run, link.peer)

    def aborted(self, link: Link, run: str, reason: str) -> None:
        """Stop a run that failed at a peer."""
        communicator = self._runs.get(run)
        if communicator is not None and link.peer in communicator.peers:
            communicator.stop(run, reason)

    def lost(self, link: Link, reason: LostLink) -> None:
        """Remove a link, and fail the runs that used it."""
        log.info("the link to %s has ended: %s", link.peer, reason)
        with self._changed:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
            for run in self._unconfirmed:
                self._confirm(run, link.peer)
            runs = list(self._runs.items())
            self._changed.notify_all()
        for run, communicator in runs:
            if link.peer in communicator.peers:
                communicator.peer_lost(link.peer, run, reason)


def _ignore(peer: str, name: str, head: bytes) -> None:
    """Take no notice of what a peer tells of its log."""

"""All links of a worker, and the runs that use them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

import tenacity

from mplang_core.errors import CommError
from mplang_http.connection import Connection
from mplang_http.frames import Kind
from mplang_http.link import Link
from mplang_http.values import Packed

__all__ = ["Links"]

CLOSE_TIMEOUT = 1.0  # seconds that a peer has to confirm the end of a run
log = logging.getLogger("mplang.http.link")


class Links:
    """The links of one worker: one per other worker, and who gets what comes on them.

    Of each pair of workers the one whose name comes first connects to the other.

    Args:
        name: this worker.
        dial: connects to a worker, given its name and address.
        largest: how many bytes a message has at most.
        waiting: how many bytes of a peer's messages are kept until a program asks for them.
        most: how many links there are at most.
    """

    def __init__(
        self,
        name: str,
        dial: Callable[[str, str], Connection],
        *,
        max_message: int,
        max_links: int,
        max_waiting: int = 1 << 40,
    ) -> None:
        self.name = name
        self._dial = dial
        self._max_message = max_message
        self._max_waiting = max_waiting
        self._max_links = max_links
        self._links: dict[str, Link] = {}
        self._runs: dict[str, Any] = {}
        self._unconfirmed: dict[str, set[str]] = {}
        self._changed = threading.Condition()
        self._dialling: dict[str, threading.Lock] = {}

    def add(self, connection: Connection, peer: str) -> None:
        """Begin with a connection; one that is there already ends.

        Raises:
            CommError: there are too many.
        """
        link = Link(connection, peer, self, self._max_message, self._max_waiting)
        with self._changed:
            before = self._links.get(peer)
            if before is None and len(self._links) >= self._max_links:
                raise CommError(
                    f"worker {self.name} has {self._max_links} links, and takes no more"
                )
            self._links[peer] = link
            self._changed.notify_all()
        if before is not None:
            before.close("the peer connected anew")
        log.info("there is a link to %s", peer)
        link.start()

    def connect(self, peer: str, address: str, timeout: float) -> None:
        """Have a link to a worker: make it, or wait for the other to do so.

        Raises:
            CommError: there is none in time.
        """
        if peer == self.name or peer in self._links:
            return
        if self.name < peer:
            with self._changed:
                lock = self._dialling.setdefault(peer, threading.Lock())
            with lock:
                if peer not in self._links:
                    self.add(self._dial_until_up(peer, address, timeout), peer)
            return
        with self._changed:
            connected = self._changed.wait_for(lambda: peer in self._links, timeout)
        if not connected:
            raise CommError(
                f"worker {self.name} waited {timeout:g} s for {peer} to connect; is it running?"
            )

    def _dial_until_up(self, peer: str, address: str, timeout: float) -> Connection:
        """Dial until the other is up, as workers start in any order."""
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OSError),
            stop=tenacity.stop_after_delay(timeout),
            wait=tenacity.wait_fixed(0.1),
            reraise=True,
        )
        try:
            return again(self._dial, peer, address)
        except OSError as error:
            raise CommError(
                f"worker {self.name} cannot reach {peer} at {address}: {error}"
            ) from None

    def get(self, peer: str) -> Link | None:
        """Return the link to a worker, if there is one."""
        return self._links.get(peer)

    def all(self) -> list[Link]:
        """Return all links."""
        with self._changed:
            return list(self._links.values())

    def close(self) -> None:
        """End all links."""
        for link in self.all():
            link.close("the worker ends")

    # -- runs

    def open_run(self, run: str, communicator: Any) -> None:
        """Have messages of a run go to a communicator, and tell its peers.

        Raises:
            CommError: another communicator has a run of that name.
        """
        with self._changed:
            if self._runs.setdefault(run, communicator) is not communicator:
                raise CommError(f"worker {self.name} is in another run {run!r} already")
        self.send_control(communicator.peers, Kind.OPEN, run)

    def close_run(self, run: str, peers: Iterable[str], expected: Iterable[str]) -> None:
        """Take no more messages of a run; wait until the peers know, for a moment at most.

        Args:
            run: the run.
            peers: who is told.
            waiting: who of them may still send.
        """
        with self._changed:
            if self._runs.pop(run, None) is None:
                return
            open_ = {peer for peer in expected if peer in self._links}
            self._unconfirmed[run] = open_
        self.send_control(peers, Kind.CLOSE, run)
        with self._changed:
            self._changed.wait_for(lambda: not open_, CLOSE_TIMEOUT)
            del self._unconfirmed[run]

    def send_control(self, peers: Iterable[str], kind: Kind, run: str, text: str = "") -> None:
        """Send word of a run; who cannot be reached is told nothing."""
        for peer in peers:
            link = self._links.get(peer)
            if link is not None:
                with contextlib.suppress(OSError):
                    link.send_control(kind, run, text)

    def abort(self, peers: Iterable[str], run: str, reason: str) -> None:
        """Tell peers that a run has failed, without waiting for one that does not read."""
        for peer in peers:
            link = self._links.get(peer)
            if link is not None:
                link.queue_control(Kind.ABORT, run, reason)

    # -- what links say

    def message(self, link: Link, key: str, packed: Packed) -> None:
        """Hand on a value."""
        communicator = self._runs.get(key.partition("/")[0])
        if communicator is not None:
            communicator.receive_value(link.peer, key, packed)

    def opened(self, link: Link, run: str) -> None:
        """Note that a peer is in a run."""
        communicator = self._runs.get(run)
        if communicator is not None:
            communicator.peer_opened(link.peer, run)

    def closed(self, link: Link, run: str) -> None:
        """Note that a peer is not in a run any more."""
        self.acknowledged(link, run)  # it will not send
        communicator = self._runs.get(run)
        if communicator is not None:
            communicator.peer_closed(link.peer, run)

    def acknowledged(self, link: Link, run: str) -> None:
        """Note that a peer knows of the end of a run."""
        with self._changed:
            unconfirmed = self._unconfirmed.get(run)
            if unconfirmed is not None:
                unconfirmed.discard(link.peer)
                self._changed.notify_all()

    def aborted(self, link: Link, run: str, reason: str) -> None:
        """End a run that failed at a peer."""
        communicator = self._runs.get(run)
        if communicator is not None and link.peer in communicator.peers:
            communicator.stop(run, reason)

    def lost(self, link: Link, reason: str) -> None:
        """End the runs that used a link."""
        log.info("the link to %s has ended: %s", link.peer, reason)
        with self._changed:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
            for unconfirmed in self._unconfirmed.values():
                unconfirmed.discard(link.peer)
            runs = list(self._runs.items())
            self._changed.notify_all()
        for run, communicator in runs:
            if link.peer in communicator.peers:
                communicator.peer_lost(link.peer, run, reason)

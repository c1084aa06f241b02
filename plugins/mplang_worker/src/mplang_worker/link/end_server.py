"""End of a session's links in a process of the worker: the front hands it sockets."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from typing import Any

from mplang_http.ext import Buffer

from mplang_core.ext import CommError
from mplang_worker.base.config import Timeouts
from mplang_worker.link.handshake import Handshake
from mplang_worker.link.links import Links
from mplang_worker.link.lost_link import LostLink
from mplang_worker.tls.credentials import LinkEnd

log = logging.getLogger("mplang.http.link")


class LinkEndServer:
    """Makes links of the sockets that the front hands over.

    Args:
        handshake: of this end.
        links: takes the links.
        parties: names of the parties, by rank.
        timeouts: timeouts of the worker.
    """

    def __init__(
        self, handshake: Handshake, links: Links, parties: Sequence[str], timeouts: Timeouts
    ) -> None:
        self._handshake, self._links = handshake, links
        self._parties, self._timeouts = parties, timeouts
        self._handshakes = threading.BoundedSemaphore(2 * len(parties))

    @property
    def public_key(self) -> str | None:
        """The public key of this end in PEM; ``None`` without TLS."""
        return self._handshake.public_key

    def accept(self, file: int | None) -> None:
        """Make a link of a socket that a peer has connected.

        Args:
            file: its descriptor.
        """
        if file is None:
            return
        sock = socket.socket(fileno=file)
        if not self._handshakes.acquire(blocking=False):
            sock.close()
            return
        threading.Thread(target=self._run_handshake, args=(sock,), daemon=True).start()

    def _run_handshake(self, sock: socket.socket) -> None:
        try:
            self._links.add(*self._handshake.accept(sock))
        except (OSError, CommError) as error:
            log.warning("a connection did not become a link: %s", error)
        finally:
            self._handshakes.release()

    def introduce(self, body: Buffer, *, ends: list[dict[str, Any]]) -> list[str]:
        """Take the ends of all parties' links, and see which of the links are there.

        Args:
            body: unused.
            ends: the ends, with the certificates that the front has verified.

        Returns:
            The names of the peers that this party connects to, and has no link to.
        """
        made = [LinkEnd(**each) for each in ends]
        for name in self._handshake.replaced(made):  # before a link of the new end can be accepted
            self._links.drop(name, LostLink.HAS_ANOTHER_KEY)
        self._handshake.introduce(made)
        rank = self._parties.index(self._links.name)
        self._links.certificate = made[rank].fingerprint
        mine = [name for name in self._parties if name > self._links.name]
        self._links.probe(mine, self._timeouts.connect / 2)
        return [name for name in mine if self._links.get(name) is None]

    def dial(self, body: socket.socket, *, peer: str) -> None:
        """Upgrade a connection to a peer to a link.

        Args:
            body: socket of the connection.
            peer: name of the peer.

        Raises:
            CommError: it does not become a link; the reason is in the log.
        """
        try:
            self._links.add(self._handshake.dial(body, peer), peer)
        except (OSError, CommError) as error:
            log.info("no link to %s yet: %s", peer, error)
            raise CommError(f"no link to {peer}", code="L004") from None

    def wait(self, body: Buffer) -> None:
        """Wait for the links to all peers.

        Args:
            body: unused.

        Raises:
            CommError: one does not come in time.
        """
        peers = [name for name in self._parties if name != self._links.name]
        self._links.wait(peers, self._timeouts.connect)

"""Notices among fronts that the owner of one has stopped a session, which then ends at all parties.

The links of the engines tell that one has ended only to whoever waits for it: a peer that computes,
or holds results, would go on. A notice is repeated until the peer answers, for an hour at most, and
at once when it is heard of.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import socket
from collections.abc import Callable, Iterable
from urllib.parse import urlencode

from mplang_http.ext import client_context, split_address

from mplang_core import MPLangError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.dialing import address_of
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread
from mplang_worker.tls.certificates import Certificates, peer_certificates

PATIENCE = 2.0  # seconds that a peer has to answer
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, *[60.0] * 60)  # seconds between two attempts
MAX_REASON = 1000  # characters
PATH = "/v1/joined"
log = logging.getLogger("mplang.http.front")


class StopNotices:
    """Sender of a worker's notices to the fronts of peers.

    Args:
        config: configuration of the worker.
        certificates: its certificates; ``None`` without TLS.
    """

    def __init__(self, config: WorkerConfig, certificates: Certificates | None) -> None:
        self._config, self._certificates = config, certificates
        self._contacts: dict[str, asyncio.Event] = {}  # of peers that have not answered

    async def send(self, session: FrontSession, why: str) -> None:
        """Notify the fronts of all peers that a session was stopped here.

        Args:
            session: the session.
            why: why.
        """
        coordinator, name = session.key
        query = urlencode({"coordinator": coordinator, "reason": why[:MAX_REASON]})
        path = f"{PATH}/{name}?{query}"

        def address_at_peer(peer: str) -> str:
            mine = self._config.peers if self._config.tls is not None else None
            # that another party is no longer a peer keeps nobody from being told
            return (mine or {}).get(peer) or address_of(peer, session, self._config)

        peers = [each for each in session.parties if each != self._config.name]
        await asyncio.gather(*(self.deliver(each, path, address_at_peer) for each in peers))

    async def deliver(self, peer: str, path: str, address: Callable[[str], str]) -> bool:
        """Send a notice until a peer answers; return whether it has.

        Args:
            peer: name of the peer.
            path: what is deleted there.
            address: returns the address of a peer, which a reload may change.
        """
        for i, pause in enumerate(PAUSES):
            try:
                await in_thread(self._send, peer, address(peer), path)
                return True
            except (LookupError, RequestError) as error:  # it is no longer a peer
                log.warning("%s was not notified that a session is stopped: %s", peer, error)
                return False
            except (OSError, http.client.HTTPException, MPLangError, ValueError) as error:
                text = "%s was not notified that a session is stopped, and will be: %s"
                log.log(logging.DEBUG if i else logging.WARNING, text, peer, error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._contacts.setdefault(peer, asyncio.Event()).wait()
        return False

    def contact(self, peers: Iterable[str]) -> None:
        """Repeat at once what peers have not answered that have been heard of."""
        for peer in peers:
            if peer in self._contacts:
                self._contacts.pop(peer).set()

    def _send(self, peer: str, address: str, path: str) -> None:
        """Send one notice; raise an error if it is not taken."""
        endpoint = split_address(address)
        connection = http.client.HTTPConnection(*endpoint)
        connection.sock = self._connect(peer, endpoint)
        with contextlib.closing(connection):
            connection.request("DELETE", path, headers={"Content-Length": "0"})
            status = connection.getresponse().status
        if status not in (200, 404):  # it may have ended there already
            raise ConnectionError(f"it answers {status}")

    def _connect(self, peer: str, endpoint: tuple[str, int]) -> socket.socket:
        sock = socket.create_connection(endpoint, PATIENCE)
        if self._certificates is None or self._config.tls is None:
            return sock
        context = client_context(self._config.tls, "http/1.1")
        for file in self._config.authorities.values():
            context.load_verify_locations(file)
        with sock:
            wrapped = context.wrap_socket(sock, server_hostname=peer)
        try:
            name = self._certificates.trust.verify(peer_certificates(wrapped)).name
            if name != peer:
                raise ConnectionError(f"its certificate is of {name}")
        except BaseException:
            wrapped.close()
            raise
        return wrapped


def check_sender(session: FrontSession | None, name: str, sender: str | None, mine: str) -> str:
    """Return who may stop a session from elsewhere, for texts: another party of it.

    Args:
        session: the session that is named; ``None`` if there is none.
        name: its name.
        sender: common name of the certificate of who asks.
        mine: name of this party.

    Raises:
        RequestError: it is not a party of the session, of which it then learns nothing.
    """
    parties = () if session is None else session.parties
    if sender not in parties or sender == mine:
        raise RequestError(404, "unknown-session", f"no session {name!r} of yours is open here")
    return str(sender)

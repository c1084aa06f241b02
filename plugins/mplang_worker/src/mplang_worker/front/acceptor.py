"""TCP acceptor of a worker: routes each connection to the HTTP server or to the link handshake."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Any

from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.logs import log_cause
from mplang_worker.front.engines import Engines
from mplang_worker.front.http_protocol import KEEP_ALIVE, Connections, LimitedHttpProtocol
from mplang_worker.front.log_quota import STRANGERS
from mplang_worker.front.unknown_clients import UnknownClients
from mplang_worker.front.uvicorn_protocol import server_settings
from mplang_worker.link.handshake import link_in_head
from mplang_worker.tls.certificates import Certificates
from mplang_worker.tls.client_hello import link_in_hello

PEEK_SIZE = 32 << 10  # bytes; more than the longest TLS client hello
SHUTDOWN = 1.0  # seconds that a client has to end TLS; else the connection is cut
log = logging.getLogger("mplang.http.front")


class Acceptor:
    """Acceptor of one TCP port, for HTTP and links.

    Args:
        app: ASGI application.
        config: configuration of the worker.
        certificates: its certificates; ``None`` without TLS.
        engines: receive the sockets of links.
    """

    def __init__(
        self, app: Any, config: WorkerConfig, certificates: Certificates | None, engines: Engines
    ) -> None:
        self._config = config
        self._certificates = certificates
        self._engines = engines
        self._settings = server_settings(app, keep_alive=KEEP_ALIVE)
        self._connections = Connections()
        self._unknown = UnknownClients(config.limits.unknown)

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until the task is cancelled."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        try:
            while True:
                try:
                    sock, (host, *_) = await loop.sock_accept(listening)
                except OSError as error:  # such as no file descriptors left
                    log.error("a connection was not accepted: %s", error)
                    await asyncio.sleep(0.1)
                    continue
                self._admit(sock, host)
        finally:
            for connection in list(self._connections.connections):
                connection.shutdown()

    def _admit(self, sock: socket.socket, host: str) -> None:
        task = asyncio.get_running_loop().create_task(self._route(sock))
        self._unknown.add(host, task)

    async def _route(self, sock: socket.socket) -> None:
        try:
            await asyncio.wait_for(self._find_route(sock), self._config.timeouts.head)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            with log_cause(STRANGERS):
                log.info("a connection ended before a request: %s", reason)
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise

    async def _find_route(self, sock: socket.socket) -> None:
        """Pass a connection to the engine that its link is of, or to the HTTP protocol."""
        loop = asyncio.get_running_loop()
        link = await self._link_of(sock)
        if link and self._engines.hand_over_link(sock, link):
            sock.close()
            return
        mine = self._certificates
        await loop.connect_accepted_socket(
            self._make_protocol,
            sock,
            ssl=None if mine is None else mine.context,
            ssl_handshake_timeout=None if mine is None else self._config.timeouts.head,
            ssl_shutdown_timeout=None if mine is None else SHUTDOWN,
        )

    async def _link_of(self, sock: socket.socket) -> str:
        """Return the name of a link's end, by peeking at its first bytes; empty for a request."""
        parse = link_in_head if self._certificates is None else link_in_hello
        seen = 0
        while True:
            await _readable(sock)
            data = sock.recv(PEEK_SIZE, socket.MSG_PEEK)
            if len(data) <= seen:
                raise ConnectionError("it closed at once")
            found = parse(data)
            if found is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                return found
            seen = len(data)
            # what is there is not readable any more: the next byte is waited for, not asked for
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, seen + 1)

    def _make_protocol(self) -> LimitedHttpProtocol:
        return LimitedHttpProtocol(
            self._settings,
            self._connections,
            self._config,
            self._certificates,
            self._engines.credentials,
        )

    def check_connections(self, *, again: bool) -> None:
        """Close the connections whose certificate has expired, or is refused.

        Args:
            again: whether to verify them again, as certificates or revocation lists have changed.
        """
        for connection in list(self._connections.connections):
            if isinstance(connection, LimitedHttpProtocol):
                connection.check(again=again)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(sock, ready)
    try:
        await future
    finally:
        loop.remove_reader(sock)

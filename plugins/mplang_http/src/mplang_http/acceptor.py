"""TCP acceptor of a worker: routes each connection to the HTTP server or to the link handshake."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import socket
import ssl
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from cryptography.x509 import Certificate
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mplang_core.ext import AdmissionError
from mplang_http.certificates import Certificates, peer_certificates
from mplang_http.config import WorkerConfig, is_loopback
from mplang_http.engines import Engines
from mplang_http.handshake import link_in_head
from mplang_http.tls import link_in_hello

PEEK_SIZE = 32 << 10  # bytes; more than the longest TLS client hello
READ_AHEAD = 1 << 20  # bytes of a body to buffer before the application reads them
PROBES = (b"/health", b"/ready")  # what may be asked without a certificate, once a connection
SHUTDOWN = 1.0  # seconds that a client has to end TLS; else the connection is cut
KEEP_ALIVE = 75  # seconds that an idle connection is kept open
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
        self._uvicorn = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False,
            timeout_keep_alive=KEEP_ALIVE, server_header=False,
        )  # fmt: skip
        self._uvicorn.load()
        self._state = ServerState()
        self._unknown = UnknownClients(config.limits.unknown)
        self._strangers: dict[_LimitedHttpProtocol, None] = {}

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
            for connection in list(self._state.connections):
                connection.shutdown()

    def _admit(self, sock: socket.socket, host: str) -> None:
        task = asyncio.get_running_loop().create_task(self._route(sock))
        self._unknown.add(host, task)

    async def _route(self, sock: socket.socket) -> None:
        try:
            await asyncio.wait_for(self._find_route(sock), self._config.timeouts.head)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.info("a connection ended before a request: %s", str(error) or "it took too long")
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

    def _make_protocol(self) -> _LimitedHttpProtocol:
        return _LimitedHttpProtocol(
            self._uvicorn, self._state, self._strangers, self._config, self._certificates,
            self._engines,
        )  # fmt: skip

    def check_connections(self, *, again: bool) -> None:
        """Close the connections whose certificate has expired, or is refused.

        Args:
            again: whether to verify them again, as certificates or revocation lists have changed.
        """
        for connection in list(self._state.connections):
            if isinstance(connection, _LimitedHttpProtocol):
                connection.check(again=again)


class UnknownClients:
    """Connections whose clients are not known yet: each address has a share of them.

    When there are too many, the oldest of the address that has the most is closed. So whoever
    connects many times, and says nothing, keeps nobody out: not those at other addresses, nor
    those at its own that say who they are at once.

    Args:
        limit: maximum number of connections.

    Example:
        >>> UnknownClients(100).limit
        100
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._by_host: dict[str, dict[asyncio.Task[None], None]] = {}
        self._count = 0

    def add(self, host: str, task: asyncio.Task[None]) -> None:
        """Add a connection, until its task ends; close another one if there are too many.

        Args:
            host: address of the client.
            task: the task that finds out who the client is.
        """
        self._by_host.setdefault(host, {})[task] = None
        self._count += 1
        task.add_done_callback(lambda task: self._remove(host, task))
        if self._count > self.limit:
            most = max(self._by_host, key=lambda each: len(self._by_host[each]))
            oldest = next(iter(self._by_host[most]))
            self._remove(most, oldest)
            oldest.cancel()

    def _remove(self, host: str, task: asyncio.Task[None]) -> None:
        tasks = self._by_host.get(host, {})
        if tasks.pop(task, self) is None:
            self._count -= 1
        if not tasks:
            self._by_host.pop(host, None)


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


def _is_loopback(host: bytes) -> bool:
    """Return whether a Host is loopback; else a name may have been bound to it (DNS rebinding)."""
    with contextlib.suppress(ValueError):
        return is_loopback(urlsplit(f"//{host.decode('latin-1')}").hostname or "")
    return False


class _LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP protocol with limits on the head, timeouts, and the client's name in the request state.

    A timer runs whenever the server waits for the client: for the head, for the rest of a body that
    no route reads, for the next request, for a response to be read.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        strangers: dict[_LimitedHttpProtocol, None],
        worker: WorkerConfig,
        certificates: Certificates | None,
        engines: Engines,
    ) -> None:
        super().__init__(config, state, {})
        self._worker = worker
        self._certificates = certificates
        self._engines = engines
        self._strangers = strangers  # connections of those who are no coordinators, oldest first
        self._chain: list[Certificate] = []  # of the client
        self._expires = math.inf
        self.caller: str | None = None
        self._head_bytes: int | None = 0  # bytes of the head so far; None once it is complete
        self._body_received = False  # whether the body of the last request is complete
        self._timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            self.caller = self._identify(transport)
        except AdmissionError as error:
            log.info("a certificate is refused: %s", error)
            self._make_room()
            self._send_error(403, "certificate", f"this certificate is refused: {error}")
            return
        self.app_state = {"caller": self.caller}
        self._start_timer(self._worker.timeouts.head)
        if self._worker.tls is not None and self.caller not in self._worker.coordinators:
            self._make_room()
            return
        if self.caller is not None and self._chain:
            self._engines.met(self.caller, self._chain, self._expires)
        known = [
            each
            for each in self.connections
            if isinstance(each, _LimitedHttpProtocol) and each not in self._strangers
        ]
        mine = sum(each.caller == self.caller for each in known)
        quotas, limit = self._worker.quotas, self._worker.limits.connections
        quota = limit if self._worker.tls is None else quotas.connections
        if mine > quota or len(known) > limit:
            self._send_error(429, "busy", f"{self.caller} has too many connections, or all have")

    def _make_room(self) -> None:
        """Count this as a connection of a stranger; cut the oldest one if there are too many."""
        self._strangers[self] = None
        if len(self._strangers) > self._worker.limits.unknown:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    def _identify(self, transport: asyncio.Transport) -> str | None:
        """Return the name of the client, which has none without a certificate.

        Raises:
            AdmissionError: its certificate is refused.
        """
        if self._certificates is None:
            return "local"
        chain = peer_certificates(transport.get_extra_info("ssl_object"))
        if not chain:
            return None
        party = self._certificates.trust.verify(chain)
        self._chain = chain
        # the client knows this worker by the certificate of the handshake, whatever comes later
        self._expires = min(party.expires, self._certificates.expires).timestamp()
        return party.name

    def check(self, *, again: bool) -> None:
        """Close the connection if a certificate of it has expired, or is refused.

        Args:
            again: whether to verify that of the client again.
        """
        why = "it, or that of this worker, has expired" if time.time() > self._expires else ""
        if again and self._chain and self._certificates is not None:
            try:
                self._certificates.trust.verify(self._chain)
            except AdmissionError as error:
                why = str(error)
        if why:
            log.warning("a connection of %s ends with its certificate: %s", self.caller, why)
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._strangers.pop(self, None)
        self._cancel_timer()
        self._cancel_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # it was refused
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > self._worker.limits.head:
            self._send_error(431, "head", "the head is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_bytes is None:
            self._head_bytes = 0
            self._start_timer(self._worker.timeouts.head)

    def on_headers_complete(self) -> None:
        size = sum(len(name) + len(value) for name, value in self.headers) + len(self.url)
        if size > self._worker.limits.head:
            self._send_error(431, "head", "the head is too large")
            raise ValueError("the head is too large")
        refused = self._refusal()
        if refused is not None:
            self._send_error(*refused)
            raise ValueError(refused[2])
        self._head_bytes, self._body_received = None, False
        self._cancel_timer()
        super().on_headers_complete()

    def _refusal(self) -> tuple[int, str, str] | None:
        """Return why a request is refused whatever it asks: web pages may not reach a worker."""
        fields = dict(self.headers)
        if self.caller is None and self.url.partition(b"?")[0] not in PROBES:
            return 403, "no-certificate", "without a certificate there are /health and /ready only"
        if b"origin" in fields or b"sec-fetch-site" in fields:
            return 403, "browser", "a worker does not serve the requests of web pages"
        if self._worker.tls is None and not _is_loopback(fields.get(b"host", b"")):
            return 421, "host", "without tls a worker is asked at a loopback address"
        return None

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if len(self.cycle.body) < READ_AHEAD:
            self.flow.resume_reading()  # uvicorn stops at 64 KiB, which halves the speed

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._body_received = True
        if self.cycle.response_complete:
            self._start_timer(KEEP_ALIVE)

    def on_response_complete(self) -> None:
        more = bool(self.pipeline)
        super().on_response_complete()
        if self.caller is None:
            self.transport.close()
        if not more and self._head_bytes is None:
            self._start_timer(KEEP_ALIVE if self._body_received else self._worker.timeouts.body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self._worker.timeouts.body, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel_stall_timer()
        super().resume_writing()

    def _unsupported_upgrade_warning(self) -> None:
        pass  # the request is served as if it had no Upgrade header

    def send_400_response(self, msg: str) -> None:
        self._send_error(400, "damaged", msg)

    def _send_error(self, status: int, code: str, text: str) -> None:
        """Send an error response to a request that cannot be parsed, and close the connection."""
        if self.transport.is_closing():
            return
        content = json.dumps({"error": {"code": code, "text": text}}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.transport.write(head.encode() + content)
        self.transport.close()

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _start_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

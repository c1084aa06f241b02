"""The one port: who connects is served by HTTP, or handed on to become a link."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mplang_http.config import WorkerConfig
from mplang_http.supervisor import Supervisor
from mplang_http.tls import common_name, offers_link, server_context

__all__ = ["Door"]

GET_LINK = b"GET /link "
PEEK = 32 << 10
IDLE = 75  # seconds that a connection is kept without a request
log = logging.getLogger("mplang.http.front")


class Door:
    """Accepts connections on one port.

    Args:
        app: the HTTP application.
        config: the worker.
        engine: gets the connections that are to become links.
    """

    def __init__(self, app: Any, config: WorkerConfig, engine: Supervisor) -> None:
        self._config = config
        self._engine = engine
        self._tls = server_context(config.tls, "http/1.1") if config.tls is not None else None
        self._uvicorn = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False,
            timeout_keep_alive=IDLE, server_header=False,
        )  # fmt: skip
        self._uvicorn.load()
        self._state = ServerState()
        self._entering: set[asyncio.Task[None]] = set()

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        try:
            while True:
                try:
                    sock, _ = await loop.sock_accept(listening)
                except OSError as error:  # no file descriptors left, say
                    log.error("a connection was not accepted: %s", error)
                    await asyncio.sleep(0.1)
                    continue
                self._let_in(sock)
        finally:
            for connection in list(self._state.connections):
                connection.shutdown()

    def _let_in(self, sock: socket.socket) -> None:
        if len(self._entering) + len(self._state.connections) >= self._config.limits.connections:
            sock.close()
            return
        task = asyncio.get_running_loop().create_task(self._enter(sock))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            if await self._is_link(sock):
                self._engine.give_link(sock)
                sock.close()
                return
            await loop.connect_accepted_socket(
                self._protocol,
                sock,
                ssl=self._tls,
                ssl_handshake_timeout=self._config.timeouts.head if self._tls else None,
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.info("a connection ended before a request: %s", error)
            with contextlib.suppress(OSError):
                sock.close()

    async def _is_link(self, sock: socket.socket) -> bool:
        """Tell from the first bytes, which stay where they are."""
        deadline = time.monotonic() + self._config.timeouts.head
        await asyncio.wait_for(_readable(sock), self._config.timeouts.head)
        while True:
            data = sock.recv(PEEK, socket.MSG_PEEK)
            if not data:
                raise ConnectionError("it closed at once")
            if self._tls is not None:
                found = offers_link(data)
            elif len(data) >= len(GET_LINK):
                found = data.startswith(GET_LINK)
            else:
                found = None if GET_LINK.startswith(data) else False
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError("its first words did not come in time")
            await asyncio.sleep(0.01)

    def _protocol(self) -> _Guarded:
        return _Guarded(self._uvicorn, self._state, self._config)


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


class _Guarded(HttpToolsProtocol):
    """HTTP with limits on the head, and with the one who asks in the state of a request."""

    def __init__(self, config: uvicorn.Config, state: ServerState, worker: WorkerConfig) -> None:
        super().__init__(config, state, {})
        self._worker = worker
        self._head: int | None = 0  # bytes so far; None once it is complete
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        encrypted = transport.get_extra_info("ssl_object")
        who = common_name(encrypted.getpeercert()) if encrypted is not None else "local"
        self.app_state = {"who": who}
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head is not None and self._head > self._worker.limits.head:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head is None:
            self._head = 0
            self._wait()

    def on_headers_complete(self) -> None:
        size = sum(len(name) + len(value) for name, value in self.headers) + len(self.url)
        if size > self._worker.limits.head:
            raise ValueError("the head is too large")  # which is answered by 400
        self._head = None
        self._stop()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(self._worker.timeouts.head, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

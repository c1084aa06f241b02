"""HTTP server of a control socket: limits and timeouts are those of the worker's port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from mplang_worker.base.config import WorkerConfig
from mplang_worker.control.app import create_control_app
from mplang_worker.control.listening import listen
from mplang_worker.control.peer import ControlRole, Credentials, Roles, credentials_of
from mplang_worker.front.engines import Engines
from mplang_worker.front.http_protocol import KEEP_ALIVE, Connections, LimitedHttpProtocol
from mplang_worker.front.uvicorn_protocol import ServerSettings, server_settings

MAX_CONNECTIONS = 64
log = logging.getLogger("mplang.http.control")


class ControlProtocol(LimitedHttpProtocol):
    """HTTP on one connection of a control socket, whose peer the kernel names.

    Args:
        settings: settings of the server.
        connections: all connections of the socket.
        worker: configuration of the worker.
        engines: its engines.
        roles: roles of the peers.
    """

    def __init__(
        self,
        settings: ServerSettings,
        connections: Connections,
        worker: WorkerConfig,
        engines: Engines,
        roles: Roles,
    ) -> None:
        super().__init__(settings, connections, worker, None, engines.credentials)
        self._roles = roles

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find the roles of the peer."""
        try:
            peer = credentials_of(transport.get_extra_info("socket"))
        except OSError:
            peer = Credentials(-1, frozenset())  # nobody
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self._send_error(429, "busy", f"at most {MAX_CONNECTIONS} connections are open here")
        elif not self.transport.is_closing():
            self.app_state = {"peer": peer.name, "roles": self._roles.of(peer)}


@contextlib.asynccontextmanager
async def control_socket(config: WorkerConfig, engines: Engines) -> AsyncIterator[None]:
    """Serve the control socket of a worker inside of ``async with``, if it has one.

    Args:
        config: configuration of the worker.
        engines: its engines.

    Raises:
        ConfigError: the socket cannot be made.
    """
    if config.control is None:
        yield
        return
    roles, listening = Roles(config.control), listen(config.control)
    settings = server_settings(create_control_app(config, engines), keep_alive=KEEP_ALIVE)
    connections = Connections()

    def protocol() -> ControlProtocol:
        return ControlProtocol(settings, connections, config, engines, roles)

    server = await asyncio.get_running_loop().create_unix_server(protocol, sock=listening)
    log.info("control socket at %s, for %s", config.control.path, ", ".join(ControlRole))
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            Path(config.control.path).unlink()

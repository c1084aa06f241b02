"""HTTP of uvicorn, adapted: all that a worker uses of it, its private methods included.

uvicorn has no interface for a server that owns its sockets, so a new release may change what is
overridden here. Its bound in ``pyproject.toml`` is raised once the tests pass with that release.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeAlias

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

READ_AHEAD = 1 << 20  # bytes of a body to buffer before the application reads them

ServerSettings: TypeAlias = uvicorn.Config
"""What all connections of a server share, and never change."""


def server_settings(app: Any, *, keep_alive: int) -> ServerSettings:
    """Return the settings of a server.

    Args:
        app: ASGI application.
        keep_alive: seconds that an idle connection is kept open.
    """
    made = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False,
        timeout_keep_alive=keep_alive, server_header=False, proxy_headers=False,
    )  # fmt: skip
    made.load()
    logging.getLogger("uvicorn.error").addFilter(_is_failure)
    return made


def _is_failure(record: logging.LogRecord) -> bool:
    """Return whether an error is one: the end of a worker cancels what it still answers."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)


class ServerConnections(ServerState):
    """Connections of a server; each adds and removes itself, as ``connections``."""


class UvicornProtocol(HttpToolsProtocol):
    """HTTP on one connection, with what a worker needs beside: bodies that go past the parser.

    Args:
        settings: settings of the server.
        connections: all its connections.
    """

    def __init__(self, settings: ServerSettings, connections: ServerConnections) -> None:
        super().__init__(settings, connections, {})

    @property
    def answered(self) -> bool:
        """Whether the response to the last request is complete."""
        return self.cycle.response_complete

    @property
    def more_requests(self) -> bool:
        """Whether further requests have come before the last one was answered."""
        return bool(self.pipeline)

    def refuse_damaged(self, why: str) -> None:
        """Send an error to who sends no HTTP, and close the connection."""
        raise NotImplementedError

    def on_body(self, body: bytes) -> None:
        """Read ahead."""
        super().on_body(body)
        if len(self.cycle.body) < READ_AHEAD:
            self.flow.resume_reading()  # uvicorn stops at 64 KiB, which halves the speed

    def end_body(self) -> None:
        """Go on with the next request: the body of the last one has come past the parser."""
        self.parser = httptools.HttpRequestParser(self)  # the other one waits for the body
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        self.receive_by(self)
        self.on_message_complete()

    def receive_by(self, protocol: asyncio.BaseProtocol) -> None:
        """Resume reading of a protocol."""
        self.flow.pause_reading()  # uvloop looks at the kind of a protocol when it starts to read
        self.transport.set_protocol(protocol)
        self.flow.resume_reading()

    def _unsupported_upgrade_warning(self) -> None:
        pass  # the request is served as if it had no Upgrade header

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP in the worker's words."""
        self.refuse_damaged(msg)

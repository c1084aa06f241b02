"""What the HTTP server logs of requests that it does not answer: failures, not a worker's end."""

from __future__ import annotations

import asyncio

import pytest
from mplang_worker.front.uvicorn_protocol import ServerConnections, UvicornProtocol, server_settings

REQUEST = b"GET / HTTP/1.1\r\nHost: bank\r\nConnection: close\r\n\r\n"


async def ask(app):
    """Ask an application on one connection, until its task has ended."""
    settings, connections = server_settings(app, keep_alive=1), ServerConnections()
    loop = asyncio.get_running_loop()
    made = lambda: UvicornProtocol(settings, connections)  # noqa: E731
    server = await loop.create_server(made, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(REQUEST)
        await app.begun.wait()
        for task in connections.tasks if app.failure is None else ():
            task.cancel()  # as the end of the event loop does
        await reader.read()  # until the connection is closed
        writer.close()


class App:
    """Application that fails, or waits for ever."""

    def __init__(self, failure):
        self.failure, self.begun = failure, asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.begun.set()
        if self.failure is not None:
            raise self.failure
        await asyncio.Event().wait()


@pytest.mark.parametrize("failure", [None, ValueError("a fault")])
def test_what_the_end_of_a_worker_cancels_is_no_error(failure, caplog):
    """Each restart of a worker with sessions left a traceback for each of them in its log."""
    asyncio.run(ask(App(failure)))
    logged = [record for record in caplog.records if record.name == "uvicorn.error"]
    assert len(logged) == (failure is not None)

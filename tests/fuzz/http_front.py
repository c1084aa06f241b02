"""Front of a worker within this process, so that coverage is known; its engines are processes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import logging
import socket
from typing import Any

import uvloop
from http_raw import DOUBLE, sha
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.acceptor import Acceptor
from mplang_worker.front.app import create_worker_app
from mplang_worker.front.engines import Engines
from mplang_worker.front.warm_process import WARM
from mplang_worker.process.forks import ForkServer

SESSION = "fuzz"
PATIENCE = 30.0  # seconds until a request that is not answered is a hang
OFTEN = 50  # inputs between two checks of the worker's health
WAITS = (b"wait=", b"/events")  # requests that are answered when a job has ended
CONFIG: dict[str, Any] = {
    "name": "party0",
    "imports": ("mplang_testing.dialect",),
    "dialects": ("kit",),
    "limits": {"items": 100_000, "value": 8 << 20, "sessions": 4, "values": 50, "jobs": 50,
               "failures": 1_000_000},
    "log_level": "error",
    "timeouts": {"head": 0.1, "body": 0.1, "connect": 1.0, "lease": 5.0},
}  # fmt: skip


class Front(logging.Handler):
    """Front of a worker, and the one client that it has.

    What it logs as an error is a finding, and so is an engine that ends.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.mistakes: list[str] = []
        logging.getLogger().addHandler(self)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._runner.get_loop().set_exception_handler(
            lambda loop, context: self.mistakes.append(repr(context))
        )
        self._count = 0
        self._runner.run(self._start())

    def emit(self, record: logging.LogRecord) -> None:
        self.mistakes.append(self.format(record))

    async def _start(self) -> None:
        config = WorkerConfig(**CONFIG)
        self._engines = Engines(config, None, ForkServer(WARM))
        app = create_worker_app(config, self._engines)
        listening = socket.create_server(("127.0.0.1", 0))
        self._address = listening.getsockname()
        self._engines.start()
        acceptor = Acceptor(app, config, None, self._engines)
        self._serving = asyncio.get_running_loop().create_task(acceptor.serve(listening))
        await self._engines.warm.ready(60.0)

    def send(self, data: bytes) -> None:
        """Send bytes on a new connection, and check what comes back and the state of the worker."""
        try:
            self._runner.run(self._send(data))
        except TimeoutError:
            if not any(word in data for word in WAITS):
                raise AssertionError("the worker neither answers nor closes") from None
            self._count = 0
        assert not self.mistakes, self.mistakes
        assert not self._engines.crashes

    async def _send(self, data: bytes) -> None:
        if self._count % OFTEN == 0:
            await self._renew()
        self._count += 1
        async with asyncio.timeout(PATIENCE):
            for status in statuses(await self._exchange(data)):
                assert status < 500 or status == 503, status

    async def _renew(self) -> None:
        """Ask for the health, and open the session again that an input may have closed."""
        async with asyncio.timeout(60):
            await self._ask("GET", "/health")
            while not await self._opened():
                pass  # a request that came before is still closing it

    async def _opened(self) -> bool:
        party = {"name": CONFIG["name"], "address": "http://127.0.0.1:1"}
        here = f"/v1/sessions/{SESSION}"
        for other in list(self._engines._sessions):
            await self._engines.close(*other)
        opened = await self._ask("PUT", here, json.dumps({"rank": 0, "parties": [party]}))
        links = {"credentials": [opened["credential"]], "generation": 0}
        steps = [
            ("POST", f"{here}/links", json.dumps(links)),
            ("PUT", f"{here}/programs/{sha(DOUBLE)}", DOUBLE),
        ]
        for method, path, body in steps:
            if "error" in await self._ask(method, path, body, allowed=404):
                return False
        return True

    async def _ask(
        self, method: str, path: str, body: bytes | str = b"", *, allowed: int = 200
    ) -> Any:
        body = body.encode() if isinstance(body, str) else body
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        received = b""
        while not received:  # on a busy machine, the short timeouts may end an honest request
            received = await self._exchange(head.encode() + b"\r\n" + body)
        assert statuses(received) in ([200], [allowed]), received
        return json.loads(received.partition(b"\r\n\r\n")[2])

    async def _exchange(self, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(data)
            received = b""
            with contextlib.suppress(OSError):
                received = await reader.read(1 << 16)
                writer.write_eof()  # not before, as responses to whoever has gone are dropped
                received += await reader.read()
            return received
        finally:
            writer.close()

    def close(self) -> None:
        """End the front and its engines."""
        self._serving.cancel()
        self._engines.stop()
        self._runner.close()
        logging.getLogger().removeHandler(self)


class _Received(io.BytesIO):
    """Socket and file of responses that have been received."""

    def makefile(self, mode: str) -> _Received:
        return self

    def close(self) -> None:
        """Stay open, as several responses may follow each other."""


def statuses(data: bytes) -> list[int]:
    """Return the status of each response; raise an exception if one is malformed."""
    found, source = [], _Received(data)
    while source.tell() < len(data):
        response = http.client.HTTPResponse(source)  # type: ignore[arg-type]
        response.begin()
        with contextlib.suppress(http.client.IncompleteRead):  # of HEAD, or the engine ended
            response.read()
        found.append(response.status)
    return found

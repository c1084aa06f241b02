"""Context of a request: authorization, bodies, and calls of engines."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from mplang_worker.base.config import LOCAL, WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import charge_log
from mplang_worker.front.download import Download
from mplang_worker.front.engines import Engines
from mplang_worker.front.job_calls import JobCalls
from mplang_worker.front.jobs import KnownJob
from mplang_worker.front.live_config import check_coordinator
from mplang_worker.front.observability import told_status
from mplang_worker.wire import ipc

MIN_RATE = 64 << 10  # minimum bytes per second of a request's body
BINARY = "application/octet-stream"
EVENTS = "text/event-stream"
ACTIVE_STATES = ("queued", "running")
log = logging.getLogger("mplang.http.front")


class RequestContext:
    """Authorization, body limits and engine calls that all routes share.

    Args:
        config: configuration of the worker.
        engines: engines of the sessions.
        jobs: calls about their jobs.
    """

    def __init__(self, config: WorkerConfig, engines: Engines, jobs: JobCalls) -> None:
        self._config = config
        self._engines = engines
        self._jobs = jobs
        self._incoming = Counter[str]()  # bytes of bodies that are being read, by coordinator

    def authorize(self, request: Request) -> str:
        """Return the coordinator's name, from the common name of its certificate.

        Raises:
            RequestError: the client is not a coordinator of this worker.
        """
        if self._config.tls is None:
            charge_log(LOCAL)
            return LOCAL
        coordinator: str | None = getattr(request.state, "caller", None)
        check_coordinator(coordinator, self._config)
        assert coordinator is not None
        charge_log(coordinator)
        return coordinator

    def failures(self, request: Request) -> dict[str, int] | None:
        """Return the failed runs of the client and their limit; ``None`` for no coordinator."""
        try:
            coordinator = self.authorize(request)
        except RequestError:
            return None
        budget = self._engines.budget
        return {"used": budget.used(coordinator), "limit": budget.limit}

    async def alarms(self, request: Request) -> list[dict[str, str]]:
        """Return which logs were set back; nothing for a client that is not a coordinator."""
        try:
            return await self._engines.gate.alarms(self.authorize(request))
        except RequestError:
            return []

    def native(self, request: Request) -> list[str]:
        """Return the names of the native services of the client's sessions."""
        try:
            coordinator = self.authorize(request)
        except RequestError:
            return []
        mine = (each for each in self._engines.sessions if each.key[0] == coordinator)
        return sorted({name for session in mine for name in session.natives})

    async def call(
        self, request: Request, method: str, session: str, body: ipc.Body = None, /, **args: Any
    ) -> Response:
        """Call the engine of a session on behalf of the coordinator.

        Args:
            request: the HTTP request.
            method: name of the engine's method.
            session: name of the session.
            body: body of the request.
            **args: further arguments of the method.

        Returns:
            The result as a JSON response.

        Raises:
            RequestError: the client is not a coordinator, or the engine returns an error.
        """
        call = self._engines.call
        return JSONResponse(await call(method, self.authorize(request), session, body, **args))

    async def stream(self, request: Request, method: str, session: str, /, **args: Any) -> Response:
        """Call the engine of a session, and stream what it returns.

        Args:
            request: the HTTP request.
            method: name of the engine's method.
            session: name of the session.
            **args: further arguments of the method.

        Raises:
            RequestError: the client is not a coordinator, or the engine returns an error.
        """
        coordinator = self.authorize(request)
        asked, gate = self._engines.find(coordinator, session), self._engines.gate
        async with gate.recorded(asked, {"value": str(args.get("name"))}):
            download = await self._engines.download(method, coordinator, session, **args)
        if method == "get":  # on record before it leaves
            try:
                await gate.fetch(coordinator, asked, args["name"], download.size)
            except BaseException:
                download.close()
                raise
        return StreamingResponse(
            self._chunks(request, download),
            media_type=BINARY,
            headers={"content-length": str(download.size)},
        )

    async def _chunks(self, request: Request, download: Download) -> AsyncIterator[bytes]:
        """Yield a value as it comes; cut the connection if it does not come whole."""
        self._engines.downloads += 1
        try:
            async for chunk in download.chunks():
                yield chunk
        except EOFError as error:
            log.warning("a value does not come whole: %s", error)
            request.state.abort()
            while not await request.is_disconnected():  # nothing ends the response before that
                await asyncio.sleep(0)
        finally:
            self._engines.downloads -= 1

    @contextlib.asynccontextmanager
    async def body(
        self, request: Request, limit: int, *, in_memory: bool = False
    ) -> AsyncIterator[ipc.Body]:
        """Read the body of a request, after authorization and all checks of its size.

        Its bytes count as coming in until the block ends, which closes its file.

        Args:
            request: the HTTP request.
            limit: maximum size in bytes.
            in_memory: whether it is bytes also if it is large.

        Raises:
            RequestError: the client is not a coordinator, or the body is too large or too slow.
        """
        coordinator = self.authorize(request)
        size = _content_length(request, limit)
        with self._reserve(coordinator, size):
            inline = size if in_memory else ipc.INLINE
            body = await _read_body(request, size, self._config.timeouts.body, inline)
            try:
                yield body
            finally:
                if isinstance(body, int):
                    os.close(body)

    @contextlib.contextmanager
    def _reserve(self, coordinator: str, size: int) -> Iterator[None]:
        coming, mine = self._incoming.total(), self._incoming[coordinator]
        limit, quota = self._config.limits.bodies, self._config.quotas.bodies
        if coming + size > limit or mine + size > quota:
            raise RequestError(
                429,
                "busy",
                f"{coming} bytes are coming in already, {mine} of {coordinator}; at most {limit} "
                f"and {quota} may at a time; try again",
            )
        self._incoming[coordinator] += size
        try:
            yield
        finally:
            self._incoming[coordinator] -= size

    async def wait_for_end(
        self,
        request: Request,
        session: str,
        run: str,
        wait: float,
        done: dict[str, Any],
        job: KnownJob | None,
    ) -> Response:
        """Wait for the end of a job.

        Args:
            request: the HTTP request.
            session: name of the session.
            run: name of the job.
            wait: maximum time to wait, in seconds.
            done: its status.
            job: what the front knows of it.

        Returns:
            The status of the job; the HTTP status is 202 if it has not ended.

        Raises:
            RequestError: the client is not a coordinator, or the job was refused.
        """
        coordinator = self.authorize(request)
        if done["ended"] is None and wait and job is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await job.ended.wait()
            if job.refused is not None:
                raise job.refused
            if job.ended.is_set():
                done = job.status
            else:  # so that the response has the current op
                done, _ = await self._jobs.status(coordinator, session, run)
        return JSONResponse(self.told(done), 202 if done["state"] in ACTIVE_STATES else 200)

    def told(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the status of a job as coordinators get it."""
        return told_status(status, observable=self._config.is_observable)

    async def events(self, request: Request, session: str, run: str, every: float) -> Response:
        """Stream the status of a job until it has ended.

        Args:
            request: the HTTP request.
            session: name of the session.
            run: name of the job.
            every: maximum time between two events, in seconds.

        Raises:
            RequestError: the client is not a coordinator, or there is no such job.
        """
        ask = functools.partial(self._jobs.status, self.authorize(request), session, run)
        first, job = await ask()

        async def tell() -> AsyncIterator[str]:
            done = first
            while True:
                yield f"data: {json.dumps(self.told(done))}\n\n"
                if done["state"] not in ACTIVE_STATES or job is None:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(every):
                        await job.ended.wait()
                done = job.status if job.ended.is_set() else (await ask())[0]

        return StreamingResponse(tell(), media_type=EVENTS)


def _content_length(request: Request, limit: int) -> int:
    """Return the length of a body, after checks of its encoding and size."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(
            415,
            "encoding",
            f"Content-Encoding {encoding[:40]} is not supported; send the body uncompressed",
        )
    length = request.headers.get("content-length")
    if length is None or not length.isdecimal():
        raise RequestError(411, "length", "a body has a Content-Length")
    size = int(length) if len(length) <= 20 else limit + 1
    if size > limit:
        raise RequestError(
            413, "too-large", f"a body has at most {limit} bytes here, not {length[:20]}"
        )
    return size


async def _read_body(request: Request, size: int, patience: float, inline: int) -> ipc.Body:
    """Read a body into bytes or a memory file, at ``MIN_RATE`` or faster."""
    file = ipc.write_file(()) if size > inline else None
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience + size / MIN_RATE
    try:
        async with asyncio.timeout_at(min(deadline, loop.time() + patience)) as limit:

            def progress() -> None:
                limit.reschedule(min(deadline, loop.time() + patience))

            if file is None:
                return await _read_small(request, size, progress)
            await _read_large(request, size, file, progress)
            return file
    except BaseException as error:
        if file is not None:
            os.close(file)
        if isinstance(error, TimeoutError):
            raise RequestError(408, "slow", "the body did not come in time") from None
        if isinstance(error, ClientDisconnect | ConnectionError):
            raise RequestError(400, "short", "the body did not come") from None
        raise


async def _read_small(request: Request, size: int, on_progress: Callable[[], None]) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        on_progress()
    if len(body) < size:
        raise ConnectionError
    return bytes(body)


async def _read_large(
    request: Request, size: int, file: int, on_progress: Callable[[], None]
) -> None:
    """Write what has come with the head, then have the protocol write the rest."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ConnectionError
    first = message["body"]
    left = memoryview(first)
    while len(left):
        left = left[os.write(file, left) :]
    if len(first) < size:
        await request.state.receive_body(file, size - len(first), on_progress)

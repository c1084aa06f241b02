"""HTTP API of a worker."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mplang_core import MPLangError
from mplang_http import ipc, response_models
from mplang_http.config import WorkerConfig
from mplang_http.engines import Engines
from mplang_http.errors import RequestError
from mplang_http.front_jobs import KnownJob
from mplang_http.handshake import UPGRADE

CHUNK = 1 << 20
MIN_RATE = 64 << 10  # minimum bytes per second of a request's body
BINARY = "application/octet-stream"
EVENTS = "text/event-stream"
ACTIVE_STATES = ("queued", "running")
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the body, in hex")]
Run = Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for the end of the job")]
Every = Annotated[float, Query(ge=0.1, le=60, description="seconds between two events")]
ROUTINE_CODES = ("unknown-program",)  # part of the protocol, so logged at level debug
log = logging.getLogger("mplang.http.front")


def _request_body(
    description: str, kind: str = BINARY, schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the OpenAPI description of a request body."""
    binary = {"type": "string", "format": "binary"}
    content = {kind: {"schema": binary if schema is None else schema}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def _error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of error responses with the given status codes."""
    error = {"model": response_models.Refused, "description": "error response"}
    return dict.fromkeys(codes, error)


_NAMES = {"type": "array", "items": {"type": "string"}}
_LINKS = {"$ref": "#/components/schemas/LinkRequest"}
_SESSION = {"$ref": "#/components/schemas/SessionRequest"}
_COMMON_ERRORS = (400, 403, 404, 405, 421, 422, 500, 503)
_BODY_ERRORS = _error_responses(408, 409, 411, 413, 415, 429)
_RUNNING: dict[int | str, dict[str, Any]] = {
    202: {"model": response_models.JobStatus, "description": "the job has not ended yet"}
}


def create_worker_app(config: WorkerConfig, engines: Engines) -> FastAPI:
    """Create the HTTP application of a worker.

    Args:
        config: configuration of the worker.
        engines: engines of the sessions.

    Returns:
        An ASGI application.
    """
    app = FastAPI(
        title="mplang worker",
        version="1",
        summary="Runs programs as one party.",
        description=__doc__,
        responses=_error_responses(*_COMMON_ERRORS),
        docs_url=None,  # its page loads scripts from other hosts
        redoc_url=None,
    )
    _describe_requests(app)
    limits, context = config.limits, RequestContext(config, engines)
    _add_handlers(app)

    @app.get("/health", response_model=response_models.Health)
    async def health(request: Request) -> dict[str, Any]:
        """Return the state of the worker."""
        return {
            "name": config.name,
            "mode": config.mode,
            "state": engines.state,
            "sessions": len(engines),
            "crashes": engines.crashes,
            "failures": context.failures(request),
        }

    @app.get(
        "/ready",
        response_model=response_models.Ready,
        responses={503: {"model": response_models.Ready}},
    )
    async def ready() -> Any:
        """Return status 200 if sessions can be opened; 503 while the worker starts or ends."""
        return JSONResponse({"state": engines.state}, 200 if engines.state == "ready" else 503)

    @app.get("/facts", response_model=response_models.Facts)
    async def facts(request: Request) -> Any:
        """Return versions, plugins and limits."""
        context.authorize(request)
        if not engines.info:
            raise RequestError(503, "starting", f"worker {config.name} is not ready yet; try again")
        return JSONResponse(engines.info)

    @app.get(
        "/link",
        status_code=426,
        response_model=response_models.Refused,
        responses={101: {"description": "the connection is a link"}},
    )
    async def link() -> Response:
        """Upgrade a connection to a link between workers; must be its first request."""
        return _error_response(
            RequestError(426, "upgrade", f"a link begins with Upgrade: {UPGRADE}")
        )

    @app.put(
        "/v1/sessions/{session}",
        openapi_extra=_request_body("the session", "application/json", _SESSION),
        response_model=response_models.Opened,
        responses=_BODY_ERRORS,
    )
    async def open_session(request: Request, session: Name) -> Any:
        """Open a session: start its process, and return the credential for its links."""
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await engines.open(context.authorize(request), session, body))

    @app.post(
        "/v1/sessions/{session}/links",
        openapi_extra=_request_body("all credentials", "application/json", _LINKS),
        response_model=response_models.Joined,
        responses=_BODY_ERRORS,
    )
    async def join(request: Request, session: Name) -> Any:
        """Link a session to those of all parties, and start its next generation."""
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await engines.join(context.authorize(request), session, body))

    @app.get("/v1/sessions/{session}", response_model=response_models.Alive)
    async def alive(request: Request, session: Name) -> Any:
        """Return whether a session is open; responds also while its process is busy."""
        found = engines.find(context.authorize(request), session)
        return {"busy": found.process is not None and found.process.pending > 0}

    @app.delete("/v1/sessions/{session}")
    async def close_session(request: Request, session: Name) -> Any:
        """Close a session: end its jobs and its process, and release its values."""
        await engines.close(context.authorize(request), session)
        return JSONResponse(None)

    @app.put(
        "/v1/sessions/{session}/programs/{program}",
        openapi_extra=_request_body("the program"),
        response_model=response_models.Taken,
        responses=_BODY_ERRORS,
    )
    async def program(request: Request, session: Name, program: Digest) -> Any:
        """Upload a program; it is verified and checked for admission."""
        async with context.body(request, limits.program) as body:
            return await context.call(request, "program", session, body, name=program)

    @app.post(
        "/v1/sessions/{session}/release",
        openapi_extra=_request_body("the names of the values", "application/json", _NAMES),
        response_model=response_models.Released,
        responses=_BODY_ERRORS,
    )
    async def release(request: Request, session: Name) -> Any:
        """Release values and renew the lease."""
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await engines.release(context.authorize(request), session, body))

    @app.get("/v1/sessions/{session}/jobs", response_model=response_models.Jobs)
    async def jobs(request: Request, session: Name) -> Any:
        """List the jobs of a session."""
        return await context.call(request, "jobs", session)

    @app.post(
        "/v1/sessions/{session}/jobs",
        openapi_extra=_request_body("a JobRequest in MessagePack"),
        response_model=response_models.JobStatus,
        responses=_BODY_ERRORS | _RUNNING,
    )
    async def submit(request: Request, session: Name, run: Run, wait: Wait = 0) -> Any:
        """Run a program; responds when the job has ended, or after ``wait`` seconds."""
        async with context.body(request, limits.request) as body:
            done, job = await engines.submit(context.authorize(request), session, run, body)
        return await context.wait_for_end(request, session, run, wait, done, job)

    @app.get(
        "/v1/sessions/{session}/jobs/{run}",
        response_model=response_models.JobStatus,
        responses=_RUNNING,
    )
    async def status(request: Request, session: Name, run: Name, wait: Wait = 0) -> Any:
        """Return the status of a job; responds when it has ended, or after ``wait`` seconds."""
        done, job = await engines.status(context.authorize(request), session, run)
        return await context.wait_for_end(request, session, run, wait, done, job)

    @app.get(
        "/v1/sessions/{session}/jobs/{run}/events",
        response_class=Response,
        responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}},
    )
    async def events(request: Request, session: Name, run: Name, every: Every = 1) -> Response:
        """Stream the status of a job until it has ended, as server-sent events."""
        return await context.events(request, session, run, every)

    @app.get(
        "/v1/sessions/{session}/jobs/{run}/spans",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def spans(request: Request, session: Name, run: Name) -> Response:
        """Return the spans of a recorded job, in MessagePack."""
        return await context.stream(request, "spans", session, run=run)

    @app.delete(
        "/v1/sessions/{session}/jobs/{run}",
        response_model=response_models.JobStatus,
        responses=_error_responses(429),
    )
    async def cancel(
        request: Request,
        session: Name,
        run: Name,
        reason: Annotated[str, Query(max_length=1000)] = "the coordinator cancelled it",
    ) -> Any:
        """Cancel a job at all parties."""
        coordinator = context.authorize(request)
        return JSONResponse(await engines.cancel(coordinator, session, run, reason))

    @app.put(
        "/v1/sessions/{session}/values/{value}",
        openapi_extra=_request_body("the value"),
        response_model=response_models.Put,
        responses=_BODY_ERRORS,
    )
    async def put(request: Request, session: Name, value: Name) -> Any:
        """Store a value."""
        async with context.body(request, limits.value) as body:
            return await context.call(request, "put", session, body, name=value)

    @app.get(
        "/v1/sessions/{session}/values/{value}",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def get(request: Request, session: Name, value: Name) -> Response:
        """Return the data of a plain value."""
        return await context.stream(request, "get", session, name=value)

    return app


class RequestContext:
    """Authorization, body limits and engine calls that all routes share.

    Args:
        config: configuration of the worker.
        engines: engines of the sessions.
    """

    def __init__(self, config: WorkerConfig, engines: Engines) -> None:
        self._config = config
        self._engines = engines
        self._incoming = Counter[str]()  # bytes of bodies that are being read, by coordinator

    def authorize(self, request: Request) -> str:
        """Return the coordinator's name, from the common name of its certificate.

        Raises:
            RequestError: the client is no coordinator of this worker.
        """
        if self._config.tls is None:
            return "local"
        coordinator: str | None = getattr(request.state, "caller", None)
        if coordinator is None or coordinator not in self._config.coordinators:
            raise RequestError(
                403,
                "no-coordinator",
                f"{coordinator} is not among the coordinators of {self._config.name}",
            )
        return coordinator

    def failures(self, request: Request) -> dict[str, int] | None:
        """Return the failed runs of the client and their limit; ``None`` for no coordinator."""
        try:
            coordinator = self.authorize(request)
        except RequestError:
            return None
        budget = self._engines.budget
        return {"used": budget.used(coordinator), "limit": budget.limit}

    async def call(
        self, request: Request, method: str, session: str, body: ipc.Body = None, /, **args: Any
    ) -> Any:
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
            RequestError: the client is no coordinator, or the engine returns an error.
        """
        call = self._engines.call
        return JSONResponse(await call(method, self.authorize(request), session, body, **args))

    async def stream(self, request: Request, method: str, session: str, /, **args: Any) -> Response:
        """Call the engine of a session, and stream the file that it returns.

        Args:
            request: the HTTP request.
            method: name of the engine's method.
            session: name of the session.
            **args: further arguments of the method.

        Raises:
            RequestError: the client is no coordinator, or the engine returns an error.
        """
        data = await self._engines.fetch(method, self.authorize(request), session, **args)
        return StreamingResponse(
            _chunks(data), media_type=BINARY, headers={"content-length": str(len(data))}
        )

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
            RequestError: the client is no coordinator, or the body is too large or too slow.
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
    ) -> Any:
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
            RequestError: the client is no coordinator, or the job was refused.
        """
        coordinator = self.authorize(request)
        if done["ended"] is None and wait and job is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), wait)
            if job.refused is not None:
                raise job.refused
            if job.ended.is_set():
                done = job.status
            else:  # so that the response has the current op
                done, _ = await self._engines.status(coordinator, session, run)
        return JSONResponse(done, 202 if done["state"] in ACTIVE_STATES else 200)

    async def events(self, request: Request, session: str, run: str, every: float) -> Response:
        """Stream the status of a job until it has ended.

        Args:
            request: the HTTP request.
            session: name of the session.
            run: name of the job.
            every: maximum time between two events, in seconds.

        Raises:
            RequestError: the client is no coordinator, or there is no such job.
        """
        ask = functools.partial(self._engines.status, self.authorize(request), session, run)
        first, job = await ask()

        async def tell() -> AsyncIterator[str]:
            done = first
            while True:
                yield f"data: {json.dumps(done)}\n\n"
                if done["state"] not in ACTIVE_STATES or job is None:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(job.ended.wait(), every)
                done = job.status if job.ended.is_set() else (await ask())[0]

        return StreamingResponse(tell(), media_type=EVENTS)


def _content_length(request: Request, limit: int) -> int:
    """Return the length of a body, after checks of its encoding and size."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(415, "encoding", f"nothing is decompressed here, so no {encoding[:40]}")
    length = request.headers.get("content-length")
    if length is None or not length.isdecimal():
        raise RequestError(411, "length", "a body has a Content-Length")
    size = int(length) if len(length) <= 20 else limit + 1
    if size > limit:
        raise RequestError(
            413, "too-large", f"at most {limit} bytes are taken here, not {length[:20]}"
        )
    return size


async def _read_body(request: Request, size: int, patience: float, inline: int) -> ipc.Body:
    """Read a body into bytes or a memory file, at ``MIN_RATE`` or faster."""
    small, file, count = bytearray(), None, 0
    if size > inline:
        file = ipc.write_file(())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience + size / MIN_RATE
    try:
        async with asyncio.timeout_at(min(deadline, loop.time() + patience)) as limit:
            async for chunk in request.stream():
                limit.reschedule(min(deadline, loop.time() + patience))
                count += len(chunk)
                if file is None:
                    small += chunk
                else:
                    os.write(file, chunk)
        if count < size:
            raise RequestError(400, "short", "the body did not come")
    except BaseException as error:
        if file is not None:
            os.close(file)
        if isinstance(error, TimeoutError):
            raise RequestError(408, "slow", "the body did not come in time") from None
        if isinstance(error, ClientDisconnect):
            raise RequestError(400, "short", "the body did not come") from None
        raise
    return bytes(small) if file is None else file


async def _chunks(data: memoryview) -> AsyncIterator[memoryview]:
    """Yield slices of memory, without a copy."""
    for begin in range(0, len(data), CHUNK):
        yield data[begin : begin + CHUNK]


def _describe_requests(app: FastAPI) -> None:
    """Add the schemas of requests that FastAPI does not decode to the OpenAPI description."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        made = described()
        made["components"]["schemas"] |= response_models.request_schemas()
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def _error_response(error: RequestError) -> JSONResponse:
    content = {"error": {"code": error.code, "text": error.text}}
    headers = {"Upgrade": UPGRADE} if error.status == 426 else None
    return JSONResponse(content, error.status, headers)


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(request: Request, error: RequestError) -> Response:
        asked = request.method, request.url.path, getattr(request.state, "caller", None)
        level = logging.DEBUG if error.code in ROUTINE_CODES else logging.INFO
        log.log(level, "%s %r of %s is refused: %s, %r", *asked, error.code, error.text)
        return _error_response(error)

    @app.exception_handler(MPLangError)
    async def own_error(request: Request, error: MPLangError) -> Response:
        return await request_error(request, RequestError.of(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        lines = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        return _error_response(RequestError(422, "invalid", "\n".join(lines)))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        response = _error_response(RequestError(error.status_code, "http", str(error.detail)))
        response.headers.update(error.headers or {})
        return response

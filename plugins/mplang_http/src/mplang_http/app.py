"""A worker's HTTP interface."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mplang_http import ipc, response_models
from mplang_http.config import WorkerConfig, is_loopback
from mplang_http.errors import RequestError
from mplang_http.handshake import UPGRADE
from mplang_http.supervisor import Supervisor

__all__ = ["create_worker_app"]

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
ROUTINE_CODES = (
    "unknown-program",
)  # errors that are part of the protocol, so not worth a log line
log = logging.getLogger("mplang.http.front")


def _request_body(
    what: str, kind: str = BINARY, schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    binary = {"type": "string", "format": "binary"}
    content = {kind: {"schema": binary if schema is None else schema}}
    return {"requestBody": {"required": True, "description": what, "content": content}}


def _error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    error = {"model": response_models.Refused, "description": "It is not done; the body says why."}
    return dict.fromkeys(codes, error)


_NAMES = {"type": "array", "items": {"type": "string"}}
_SESSION = {"$ref": "#/components/schemas/SessionRequest"}
_COMMON_ERRORS = (400, 403, 404, 405, 421, 422, 500, 503)
_BODY_ERRORS = _error_responses(408, 409, 411, 413, 415, 429)
_RUNNING: dict[int | str, dict[str, Any]] = {
    202: {"model": response_models.JobStatus, "description": "It has not ended yet."}
}


def create_worker_app(config: WorkerConfig, engine: Supervisor) -> FastAPI:
    """Return the HTTP interface of a worker.

    Args:
        config: the worker.
        engine: who does what is asked for.
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
    limits, context = config.limits, RequestContext(config, engine)
    _add_handlers(app)

    @app.get("/health", response_model=response_models.Health)
    async def health() -> dict[str, Any]:
        """Tell whether the worker is up; answers also while the engine is busy."""
        return {
            "name": config.name,
            "state": engine.state,
            "silence": round(engine.silence, 1),
            "restarts": engine.restarts,
        }

    @app.get("/facts", response_model=response_models.Facts)
    async def facts(request: Request) -> Any:
        """Tell versions, plugins and limits."""
        return await context.call(request, "facts")

    @app.get(
        "/link",
        status_code=426,
        response_model=response_models.Refused,
        responses={101: {"description": "It is a link now."}},
    )
    async def link() -> Response:
        """Become a link between workers: a connection's first request, with ``Upgrade``."""
        return _error_response(
            RequestError(426, "upgrade", f"a link begins with Upgrade: {UPGRADE}")
        )

    @app.put(
        "/v1/programs/{program}",
        openapi_extra=_request_body("the program"),
        response_model=response_models.Taken,
        responses=_BODY_ERRORS,
    )
    async def program(request: Request, program: Digest) -> Any:
        """Give a program; it is verified, and held against what this worker allows."""
        body = await context.read_body(request, limits.program)
        return await context.call(request, "program", body, name=program)

    @app.put(
        "/v1/sessions/{session}",
        openapi_extra=_request_body("the session", "application/json", _SESSION),
        response_model=response_models.Opened,
        responses=_BODY_ERRORS,
    )
    async def open_session(request: Request, session: Name) -> Any:
        """Open a session, or begin a new generation of it: has links to all parties then."""
        body = await context.read_body(request, limits.request)
        return await context.call(request, "open", body, session=session)

    @app.delete("/v1/sessions/{session}")
    async def close_session(request: Request, session: Name) -> Any:
        """End a session: its jobs end, its values go."""
        return await context.call(request, "close", session=session)

    @app.post(
        "/v1/sessions/{session}/release",
        openapi_extra=_request_body("the names of the values", "application/json", _NAMES),
        response_model=response_models.Released,
        responses=_BODY_ERRORS,
    )
    async def release(request: Request, session: Name) -> Any:
        """Let go of values, and renew the lease."""
        body = await context.read_body(request, limits.request)
        return await context.call(request, "release", body, session=session)

    @app.get("/v1/sessions/{session}/jobs", response_model=response_models.Jobs)
    async def jobs(request: Request, session: Name) -> Any:
        """Tell of the jobs of a session."""
        return await context.call(request, "jobs", session=session)

    @app.post(
        "/v1/sessions/{session}/jobs",
        openapi_extra=_request_body("a JobRequest in MessagePack"),
        response_model=response_models.JobStatus,
        responses=_BODY_ERRORS | _RUNNING,
    )
    async def submit(request: Request, session: Name, run: Run, wait: Wait = 0) -> Any:
        """Run a program; answers when it has ended, or when the time is up."""
        body = await context.read_body(request, limits.request)
        return await context.call_job(request, session, run, wait, "submit", body)

    @app.get(
        "/v1/sessions/{session}/jobs/{run}",
        response_model=response_models.JobStatus,
        responses=_RUNNING,
    )
    async def status(request: Request, session: Name, run: Name, wait: Wait = 0) -> Any:
        """Tell of a job; answers when it has ended, or when the time is up."""
        return await context.call_job(request, session, run, wait, "status")

    @app.get(
        "/v1/sessions/{session}/jobs/{run}/events",
        response_class=Response,
        responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}},
    )
    async def events(request: Request, session: Name, run: Name, every: Every = 1) -> Response:
        """Tell of a job again and again until it has ended, as server-sent events."""
        return await context.events(request, session, run, every)

    @app.get(
        "/v1/sessions/{session}/jobs/{run}/spans",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def spans(request: Request, session: Name, run: Name) -> Response:
        """Get what took how long in a job that was recorded; MessagePack."""
        return await context.stream(request, "spans", session=session, run=run)

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
        """End a job, here and at the other parties."""
        return await context.call(request, "cancel", session=session, run=run, reason=reason)

    @app.put(
        "/v1/sessions/{session}/values/{value}",
        openapi_extra=_request_body("the value"),
        response_model=response_models.Put,
        responses=_BODY_ERRORS,
    )
    async def put(request: Request, session: Name, value: Name) -> Any:
        """Give a value."""
        body = await context.read_body(request, limits.value)
        return await context.call(request, "put", body, session=session, name=value)

    @app.get(
        "/v1/sessions/{session}/values/{value}",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def get(request: Request, session: Name, value: Name) -> Response:
        """Get the data of a value that is plain."""
        return await context.stream(request, "get", session=session, name=value)

    return app


class RequestContext:
    """What routes have in common: who asks, and what the engine answers."""

    def __init__(self, config: WorkerConfig, engine: Supervisor) -> None:
        self._config = config
        self._engine = engine
        self._incoming_bytes = 0  # of the bodies that are being read

    def authorize(self, request: Request) -> str:
        """Return the coordinator, which the certificate names."""
        if self._config.tls is None:
            _check_host(request)
            return "local"
        coordinator: str | None = getattr(request.state, "caller", None)
        if coordinator is None or coordinator not in self._config.coordinators:
            raise RequestError(
                403,
                "no-coordinator",
                f"{coordinator} is not among the coordinators of {self._config.name}",
            )
        return coordinator

    async def call(self, request: Request, method: str, body: ipc.Body = None, **args: Any) -> Any:
        """Have the engine do something for the one who asks."""
        done, _ = await self._engine.call(method, self.authorize(request), body, **args)
        return JSONResponse(done)

    async def stream(self, request: Request, method: str, **args: Any) -> Response:
        """Have the engine give a file."""
        _, file = await self._engine.call(method, self.authorize(request), **args)
        assert file is not None
        data = ipc.read_file(file)
        return StreamingResponse(
            _chunks(data), media_type=BINARY, headers={"content-length": str(len(data))}
        )

    async def read_body(self, request: Request, limit: int) -> ipc.Body:
        """Read the body of one who may ask; nothing of it is read before all is checked."""
        self.authorize(request)
        size = _content_length(request, limit)
        with self._reserve(size):
            return await _read_body(request, size, self._config.timeouts.body)

    @contextlib.contextmanager
    def _reserve(self, size: int) -> Iterator[None]:
        if self._incoming_bytes + size > self._config.limits.bodies:
            raise RequestError(
                429, "busy", f"{self._incoming_bytes} bytes are coming in already; try again"
            )
        self._incoming_bytes += size
        try:
            yield
        finally:
            self._incoming_bytes -= size

    async def call_job(
        self,
        request: Request,
        session: str,
        run: str,
        wait: float,
        method: str,
        body: ipc.Body = None,
    ) -> Any:
        """Ask of a job, and wait for its end."""
        coordinator = self.authorize(request)
        ended = self._engine.final_status((coordinator, session, run))
        try:
            done, _ = await self._engine.call(method, coordinator, body, session=session, run=run)
            if done["ended"] is None and wait:
                try:
                    done = await asyncio.wait_for(asyncio.shield(ended), wait)
                except TimeoutError:  # so that the response has the current op
                    done, _ = await self._engine.call(
                        "status", coordinator, session=session, run=run
                    )
        finally:
            ended.cancel()
        return JSONResponse(done, 202 if done["state"] in ACTIVE_STATES else 200)

    async def events(self, request: Request, session: str, run: str, every: float) -> Response:
        """Tell of a job until it has ended; one that is not there is refused at once."""
        coordinator = self.authorize(request)
        call = functools.partial(self._engine.call, "status", coordinator, session=session, run=run)
        first, _ = await call()

        async def tell() -> AsyncIterator[str]:
            done = first
            while True:
                yield f"data: {json.dumps(done)}\n\n"
                if done["state"] not in ACTIVE_STATES:
                    return
                ended = self._engine.final_status((coordinator, session, run))
                try:
                    done = await asyncio.wait_for(asyncio.shield(ended), every)
                except TimeoutError:
                    done, _ = await call()
                finally:
                    ended.cancel()

        return StreamingResponse(tell(), media_type=EVENTS)


def _check_host(request: Request) -> None:
    """Refuse a page of the web that has its own name lead to this machine."""
    host = request.headers.get("host", "")
    with contextlib.suppress(ValueError):
        if is_loopback(urlsplit(f"//{host}").hostname or ""):
            return
    raise RequestError(
        421, "host", f"without tls a worker is asked at a loopback address, not {host}"
    )


def _content_length(request: Request, limit: int) -> int:
    """Return the length of a body, which was told, is allowed, and is that of what is meant."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(415, "encoding", f"nothing is decompressed here, so no {encoding[:40]}")
    told = request.headers.get("content-length")
    if told is None or not told.isdecimal():
        raise RequestError(411, "length", "a body has a Content-Length")
    size = int(told) if len(told) <= 20 else limit + 1
    if size > limit:
        raise RequestError(
            413, "too-large", f"at most {limit} bytes are taken here, not {told[:20]}"
        )
    return size


async def _read_body(request: Request, size: int, patience: float) -> ipc.Body:
    """Read a body into memory that the engine shares, if it comes at a decent pace."""
    small, file, count = bytearray(), None, 0
    if size > ipc.INLINE:
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
    """Give memory in pieces, without a copy."""
    for begin in range(0, len(data), CHUNK):
        yield data[begin : begin + CHUNK]


def _describe_requests(app: FastAPI) -> None:
    """Have the description tell also what is decoded elsewhere."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        made = described()
        made["components"]["schemas"] |= response_models.request_schemas()
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def _error_response(refusal: RequestError) -> JSONResponse:
    error = {"code": refusal.code, "text": refusal.text}
    headers = {"Upgrade": UPGRADE} if refusal.status == 426 else None
    return JSONResponse({"error": error}, refusal.status, headers)


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def refusal(request: Request, error: RequestError) -> Response:
        asked = request.method, request.url.path, getattr(request.state, "caller", None)
        level = logging.DEBUG if error.code in ROUTINE_CODES else logging.INFO
        log.log(level, "%s %r of %s is refused: %s, %r", *asked, error.code, error.text)
        return _error_response(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        lines = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        return _error_response(RequestError(422, "invalid", "\n".join(lines)))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        response = _error_response(RequestError(error.status_code, "http", str(error.detail)))
        response.headers.update(error.headers or {})
        return response

"""HTTP API of a worker."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic.v1  # noqa: F401  # FastAPI imports it for its first route; forks have it
from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from mplang_core import MPLangError
from mplang_http import response_models
from mplang_http.config import WorkerConfig
from mplang_http.engines import Engines
from mplang_http.errors import RequestError
from mplang_http.handshake import UPGRADE
from mplang_http.job_calls import JobCalls
from mplang_http.log_quota import STRANGERS
from mplang_http.logs import log_cause
from mplang_http.observability import not_observable
from mplang_http.request_context import BINARY, EVENTS, RequestContext
from mplang_http.stored_value import check_name
from mplang_http.uploads import check_digest

Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the body, in hex")]
Run = Annotated[str, Query(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for the end of the job")]
Every = Annotated[float, Query(ge=0.1, le=60, description="seconds between two events")]
RETRY_AFTER = {"starting": 1, "ShutdownError": 10}  # seconds, by error code
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
    """Return the OpenAPI description of error responses with the given status codes.

    It refers to the model of ``/link``: FastAPI would compile it for each route and code.
    """
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refused"}}}
    error = {"description": "error response", "content": content}
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
    calls = JobCalls(config, engines)
    limits, context = config.limits, RequestContext(config, engines, calls)
    _add_handlers(app)

    # routes are tried in this order, so the one that is asked most comes first
    @app.post(
        "/v1/sessions/{session}/jobs",
        openapi_extra=_request_body("a JobRequest in MessagePack"),
        response_model=response_models.JobStatus,
        responses=_BODY_ERRORS | _RUNNING,
    )
    async def submit(request: Request, session: Name, run: Run, wait: Wait = 0) -> Any:
        """Run a program; responds when the job has ended, or after ``wait`` seconds."""
        async with context.body(request, limits.request) as body:
            done, job = await calls.submit(context.authorize(request), session, run, body)
        return await context.wait_for_end(request, session, run, wait, done, job)

    @app.get("/health", response_model=response_models.Health)
    async def health(request: Request) -> dict[str, Any]:
        """Return the state of the worker."""
        return {
            "name": config.name,
            "mode": config.mode,
            "state": engines.state,
            "sessions": len(engines),
            "crashes": engines.crashes + engines.mpc.crashes,
            "native": context.native(request),
            "failures": context.failures(request),
            "gate": engines.gate.state,
            "expires": engines.credentials.expires,
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
        """Return versions, plugins, limits, and what the coordinator may read and has stored."""
        coordinator = context.authorize(request)
        if not engines.warm.info:
            raise RequestError(503, "starting", f"worker {config.name} is not ready yet; try again")
        told = {
            "data": engines.data.told(coordinator),
            "stored": await engines.storage.told(coordinator),
        }
        return JSONResponse(engines.warm.info | told)

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
        check_name(session)  # the names of its results begin with it
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

    @app.post(
        "/v1/sessions/{session}/approvals",
        openapi_extra=_request_body("the envelope", "application/json"),
        response_model=response_models.Counts,
        responses=_BODY_ERRORS,
    )
    async def approve(request: Request, session: Name) -> Any:
        """Pass an approval on, for the runs of a session."""
        async with context.body(request, limits.request, in_memory=True) as body:
            found = engines.find(context.authorize(request), session)
            data = body if isinstance(body, bytes) else b""
            return {"counts": await engines.gate.approve(found, data)}

    @app.put(
        "/v1/sessions/{session}/programs/{program}",
        openapi_extra=_request_body("the program"),
        response_model=response_models.Taken,
        responses=_BODY_ERRORS,
    )
    async def program(request: Request, session: Name, program: Digest) -> Any:
        """Upload a program; it is verified and checked for admission."""
        async with context.body(request, limits.program) as body:
            found = engines.find(context.authorize(request), session)
            async with engines.gate.recorded(found, {"program": program}):
                await engines.gate.program(found, body, program)
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
            return JSONResponse(await calls.release(context.authorize(request), session, body))

    @app.get("/v1/sessions/{session}/jobs", response_model=response_models.Jobs)
    async def jobs(request: Request, session: Name) -> Any:
        """List the jobs of a session."""
        found = await engines.call("jobs", context.authorize(request), session)
        return JSONResponse({**found, "jobs": [context.told(each) for each in found["jobs"]]})

    @app.get(
        "/v1/sessions/{session}/jobs/{run}",
        response_model=response_models.JobStatus,
        responses=_RUNNING,
    )
    async def status(request: Request, session: Name, run: Name, wait: Wait = 0) -> Any:
        """Return the status of a job; responds when it has ended, or after ``wait`` seconds."""
        done, job = await calls.status(context.authorize(request), session, run)
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
        if not config.is_observable:
            text = not_observable(config.name)
            raise RequestError(403, "not-observable", f"{text} (observable, in its configuration)")
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
        return JSONResponse(context.told(await calls.cancel(coordinator, session, run, reason)))

    @app.put(
        "/v1/sessions/{session}/values/{value}",
        openapi_extra=_request_body("the value"),
        response_model=response_models.Put,
        responses=_BODY_ERRORS,
    )
    async def put(request: Request, session: Name, value: Name) -> Any:
        """Store a value."""
        async with context.body(request, limits.value) as body:
            coordinator = context.authorize(request)
            found = engines.find(coordinator, session)
            async with engines.gate.recorded(found, {"value": value}):
                check_name(value)
            await engines.gate.put(coordinator, found, value, body)
            return await context.call(request, "put", session, body, name=value)

    @app.put(
        "/v1/sessions/{session}/inputs/{digest}",
        openapi_extra=_request_body("the value"),
        response_model=response_models.Put,
        responses=_BODY_ERRORS,
    )
    async def upload(request: Request, session: Name, digest: Digest) -> Any:
        """Store a public input of runs, which all parties are given, by its SHA-256."""
        async with context.body(request, limits.value) as body:
            found = engines.find(context.authorize(request), session)
            async with engines.gate.recorded(found, {"input": digest}):
                await check_digest(body, digest)
            return await context.call(request, "upload", session, body, digest=digest)

    @app.get(
        "/v1/sessions/{session}/values/{value}",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def get(request: Request, session: Name, value: Name) -> Response:
        """Return the data of a plain value."""
        check_name(value)
        return await context.stream(request, "get", session, name=value)

    return app


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
    if error.code in RETRY_AFTER:
        headers = {"Retry-After": str(RETRY_AFTER[error.code])}
    return JSONResponse(content, error.status, headers)


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(request: Request, error: RequestError) -> Response:
        caller = getattr(request.state, "caller", None)
        asked = request.method, request.url.path, caller
        level = logging.DEBUG if error.code in ROUTINE_CODES else logging.INFO
        with log_cause(caller or STRANGERS):
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

"""HTTP API of a worker."""

from __future__ import annotations

import functools
import logging
from dataclasses import asdict
from typing import Annotated, Any

from mplang_http.ext import UPGRADE, JobRequest, Name, Sha256, not_observable
from msgspec import Meta
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mplang_core import MPLangError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import log_cause
from mplang_worker.front import response_models as told
from mplang_worker.front.engines import Engines
from mplang_worker.front.job_calls import JobCalls
from mplang_worker.front.log_quota import STRANGERS
from mplang_worker.front.openapi import Api, Content
from mplang_worker.front.request_context import BINARY, EVENTS, RequestContext
from mplang_worker.front.stop_notices import MAX_REASON, PATH, check_sender
from mplang_worker.front.stopping import stop
from mplang_worker.front.uploads import check_digest
from mplang_worker.front.withdrawals import STORED, take_withdrawal
from mplang_worker.wire.requests import LinkRequest, SessionRequest
from mplang_worker.wire.stored_value import check_name

Wait = Annotated[float, Meta(ge=0, le=60, description="seconds to wait for the end of the job")]
Every = Annotated[float, Meta(ge=0.1, le=60, description="seconds between two events")]
Reason = Annotated[str, Meta(max_length=MAX_REASON)]
Coordinator = Annotated[str, Meta(max_length=1000, description="name of the coordinator")]
RETRY_AFTER = {"starting": 1, "queued": 1, "ShutdownError": 10}  # seconds, by error code
ROUTINE_CODES = ("unknown-program",)  # part of the protocol, so logged at level debug
COMMON_ERRORS = (400, 403, 404, 405, 421, 422, 500, 503)
BODY_ERRORS = (408, 409, 411, 413, 415, 429)
RUNNING = {202: Content(told.JobStatus, description="the job has not ended yet")}
DATA = Content(kind=BINARY)
log = logging.getLogger("mplang.http.front")


def create_worker_app(config: WorkerConfig, engines: Engines) -> Starlette:
    """Create the HTTP application of a worker.

    Args:
        config: configuration of the worker.
        engines: engines of the sessions.

    Returns:
        An ASGI application.
    """
    api = Api(
        title="mplang worker",
        summary="Runs programs as one party.",
        description=str(__doc__),
        error=Content(told.Refused, description="error response"),
        errors=COMMON_ERRORS,
    )
    calls = JobCalls(config, engines)
    limits, context = config.limits, RequestContext(config, engines, calls)

    # routes are tried in this order, so the one that is asked most comes first
    @api.route(
        "POST",
        "/v1/sessions/{session}/jobs",
        Content(told.JobStatus),
        takes=Content(kind=BINARY, description="a JobRequest in MessagePack"),
        errors=BODY_ERRORS,
        others=RUNNING,
    )
    async def submit(request: Request, session: Name, run: Name, wait: Wait = 0) -> Response:
        """Run a program; responds when the job has ended, or after ``wait`` seconds."""
        async with context.body(request, limits.request) as body:
            done, job = await calls.submit(context.authorize(request), session, run, body)
        return await context.wait_for_end(request, session, run, wait, done, job)

    @api.route("GET", "/health", Content(told.Health))
    async def health(request: Request) -> Response:
        """Return the state of the worker."""
        state = {
            "name": config.name,
            "mode": config.mode,
            "state": engines.state,
            "sessions": len(engines),
            "crashes": engines.crashes + engines.mpc.crashes,
            "native": context.native(request),
            "failures": context.failures(request),
            "gate": engines.gate.state,
            "configuration": engines.live.state,
            "missing": engines.readiness.missing,
            "expires": engines.credentials.expires,
            "logs": await context.alarms(request),
        }
        return JSONResponse(state)

    @api.route("GET", "/ready", Content(told.Ready), others={503: Content(told.Ready)})
    async def ready(request: Request) -> Response:
        """Return status 200 if programs can run; 503 while something is missing."""
        logs = sorted({each["log"] for each in await engines.gate.alarms()})
        lacks = bool(engines.readiness.missing) or engines.gate.state == "shut" or "own" in logs
        state = "lacking" if lacks and engines.state == "ready" else engines.state
        ready = {"state": state, **({"logs": logs} if logs else {})}
        return JSONResponse(ready, 200 if state == "ready" else 503)

    @api.route("GET", "/facts", Content(told.Facts))
    async def facts(request: Request) -> Response:
        """Return versions, plugins, limits, and what the coordinator may read and has stored."""
        coordinator = context.authorize(request)
        if not engines.warm.info:
            raise RequestError(503, "starting", f"worker {config.name} is not ready yet; try again")
        found = {
            "data": engines.data.descriptions(coordinator),
            "stored": await engines.storage.told(coordinator),
        }
        return JSONResponse(engines.warm.info | found)

    @api.route("GET", "/link", Content(told.Refused), status=426, others={101: None})
    async def link(request: Request) -> Response:
        """Upgrade a connection to a link between workers; must be its first request."""
        return _error_response(
            RequestError(426, "upgrade", f"a link begins with Upgrade: {UPGRADE}")
        )

    @api.route(
        "PUT",
        "/v1/sessions/{session}",
        Content(told.Opened),
        takes=Content(SessionRequest, description="the session"),
        errors=BODY_ERRORS,
    )
    async def open_session(request: Request, session: Name) -> Response:
        """Open a session: start its process, and return the credential for its links."""
        check_name(session)  # the names of its results begin with it
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await engines.open(context.authorize(request), session, body))

    @api.route(
        "POST",
        "/v1/sessions/{session}/links",
        Content(told.Joined),
        takes=Content(LinkRequest, description="all credentials"),
        errors=BODY_ERRORS,
    )
    async def join(request: Request, session: Name) -> Response:
        """Link a session to those of all parties, and start its next generation."""
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await engines.join(context.authorize(request), session, body))

    @api.route("GET", "/v1/sessions/{session}", Content(told.Alive))
    async def alive(request: Request, session: Name) -> Response:
        """Return whether a session is open; responds also while its process is busy."""
        found = engines.find(context.authorize(request), session)
        busy = found.process is not None and found.process.pending > 0
        return JSONResponse({"busy": busy})

    @api.route("DELETE", "/v1/sessions/{session}", Content(None))
    async def close_session(request: Request, session: Name) -> Response:
        """Close a session: end its jobs and its process, and release its values."""
        await engines.close(context.authorize(request), session)
        return JSONResponse(None)

    @api.route("DELETE", PATH + "/{session}", Content(None))
    async def stopped(
        request: Request, session: Name, coordinator: Coordinator, reason: Reason = ""
    ) -> Response:
        """End a session that the owner of another party of it has stopped, as that party says."""
        open_one = next((e for e in engines.sessions if e.key == (coordinator, session)), None)
        if config.tls is not None or open_one is None:
            check_sender(open_one, session, request.state.caller, config.name)
        if open_one is not None:
            by = f"party {request.state.caller}"
            engines.notices.contact([str(request.state.caller)])
            await stop(engines, open_one, f"{by} has stopped it: {reason}", by, elsewhere=True)
        return JSONResponse(None)

    @api.route("DELETE", STORED + "/{run}", Content(None))
    async def withdraw(request: Request, run: Name, coordinator: Coordinator) -> Response:
        """Withdraw what a run has stored, as another party of it says that is not to be loaded."""
        sender = request.state.caller if config.tls is not None else None
        await take_withdrawal(engines, coordinator, run, sender)
        return JSONResponse(None)

    @api.route(
        "POST",
        "/v1/sessions/{session}/approvals",
        Content(told.Counts),
        takes=Content(description="the envelope"),
        errors=BODY_ERRORS,
    )
    async def approve(request: Request, session: Name) -> Response:
        """Pass an approval on, for the runs of a session."""
        async with context.body(request, limits.request, in_memory=True) as body:
            found = engines.find(context.authorize(request), session)
            data = body if isinstance(body, bytes) else b""
            return JSONResponse({"counts": await engines.gate.approve(found, data)})

    @api.route(
        "PUT",
        "/v1/sessions/{session}/programs/{program}",
        Content(told.Taken),
        takes=Content(kind=BINARY, description="the program"),
        errors=BODY_ERRORS,
    )
    async def program(request: Request, session: Name, program: Sha256) -> Response:
        """Upload a program; it is verified and checked for admission."""
        async with context.body(request, limits.program) as body:
            found = engines.find(context.authorize(request), session)
            async with engines.gate.recorded(found, {"program": program}):
                await engines.gate.program(found, body, program)
                return await context.call(request, "program", session, body, name=program)

    @api.route(
        "POST",
        "/v1/sessions/{session}/release",
        Content(told.Released),
        takes=Content(list[str], description="the names of the values"),
        errors=BODY_ERRORS,
    )
    async def release(request: Request, session: Name) -> Response:
        """Release values and renew the lease."""
        async with context.body(request, limits.request, in_memory=True) as body:
            return JSONResponse(await calls.release(context.authorize(request), session, body))

    @api.route("GET", "/v1/jobs", Content(told.OpenJobs))
    async def open_jobs(request: Request) -> Response:
        """List the jobs of all sessions of the coordinator that have not ended."""
        return JSONResponse({"jobs": calls.unfinished(context.authorize(request))})

    @api.route("GET", "/v1/sessions/{session}/jobs", Content(told.Jobs))
    async def jobs(request: Request, session: Name) -> Response:
        """List the jobs of a session."""
        found = await engines.call("jobs", context.authorize(request), session)
        return JSONResponse({**found, "jobs": [context.told(each) for each in found["jobs"]]})

    @api.route("GET", "/v1/sessions/{session}/jobs/{run}", Content(told.JobStatus), others=RUNNING)
    async def status(request: Request, session: Name, run: Name, wait: Wait = 0) -> Response:
        """Return the status of a job; responds when it has ended, or after ``wait`` seconds."""
        done, job = await calls.status(context.authorize(request), session, run)
        return await context.wait_for_end(request, session, run, wait, done, job)

    @api.route("GET", "/v1/sessions/{session}/jobs/{run}/events", Content(str, EVENTS))
    async def events(request: Request, session: Name, run: Name, every: Every = 1) -> Response:
        """Stream the status of a job until it has ended, as server-sent events."""
        return await context.events(request, session, run, every)

    @api.route("GET", "/v1/sessions/{session}/jobs/{run}/spans", DATA)
    async def spans(request: Request, session: Name, run: Name) -> Response:
        """Return the spans of a recorded job, in MessagePack."""
        if not config.is_observable:
            text = not_observable(config.name)
            raise RequestError(403, "not-observable", f"{text} (observable, in its configuration)")
        return await context.stream(request, "spans", session, run=run)

    @api.route(
        "DELETE", "/v1/sessions/{session}/jobs/{run}", Content(told.JobStatus), errors=(429,)
    )
    async def cancel(
        request: Request, session: Name, run: Name, reason: Reason = "the coordinator cancelled it"
    ) -> Response:
        """Cancel a job at all parties."""
        coordinator = context.authorize(request)
        return JSONResponse(context.told(await calls.cancel(coordinator, session, run, reason)))

    @api.route(
        "PUT",
        "/v1/sessions/{session}/values/{value}",
        Content(told.Put),
        takes=Content(kind=BINARY, description="the value"),
        errors=BODY_ERRORS,
    )
    async def put(request: Request, session: Name, value: Name) -> Response:
        """Store a value."""
        async with context.body(request, limits.value) as body:
            coordinator = context.authorize(request)
            found = engines.find(coordinator, session)
            async with engines.gate.recorded(found, {"value": value}):
                check_name(value)
            await engines.gate.put(coordinator, found, value, body)
            return await context.call(request, "put", session, body, name=value)

    @api.route(
        "PUT",
        "/v1/sessions/{session}/inputs/{digest}",
        Content(told.Put),
        takes=Content(kind=BINARY, description="the value"),
        errors=BODY_ERRORS,
    )
    async def upload(request: Request, session: Name, digest: Sha256) -> Response:
        """Store a public input of runs, which all parties are given, by its SHA-256."""
        async with context.body(request, limits.value) as body:
            found = engines.find(context.authorize(request), session)
            async with engines.gate.recorded(found, {"input": digest}):
                await check_digest(body, digest)
            return await context.call(request, "upload", session, body, digest=digest)

    @api.route("GET", "/v1/sessions/{session}/values/{value}", DATA)
    async def get(request: Request, session: Name, value: Name) -> Response:
        """Return the data of a plain value."""
        check_name(value)
        return await context.stream(request, "get", session, name=value)

    @api.route("GET", "/openapi.json", Content(dict[str, Any]))
    async def openapi(request: Request) -> Response:
        """Return this description."""
        return JSONResponse(describe())

    describe = functools.cache(lambda: api.describe(JobRequest))
    return Starlette(routes=api.routes, exception_handlers=HANDLERS)


def _error_response(error: RequestError) -> JSONResponse:
    described: dict[str, Any] = {"code": error.code, "text": error.text}
    if error.explain:
        described["explain"] = error.explain
    if error.refusals:
        described["refusals"] = [asdict(each) for each in error.refusals]
    headers = {"Upgrade": UPGRADE} if error.status == 426 else None
    if error.code in RETRY_AFTER:
        headers = {"Retry-After": str(RETRY_AFTER[error.code])}
    return JSONResponse({"error": described}, error.status, headers)


async def _request_error(request: Request, error: Any) -> Response:
    caller = getattr(request.state, "caller", None)
    asked = request.method, request.url.path, caller
    level = logging.DEBUG if error.code in ROUTINE_CODES else logging.INFO
    with log_cause(caller or STRANGERS):
        log.log(level, "%s %r of %s is refused: %s, %r", *asked, error.code, error.text)
    return _error_response(error)


async def _own_error(request: Request, error: Any) -> Response:
    return await _request_error(request, RequestError.of(error))


async def _other_error(request: Request, error: Any) -> Response:
    response = _error_response(RequestError(error.status_code, "http", str(error.detail)))
    response.headers.update(error.headers or {})
    return response


HANDLERS = {RequestError: _request_error, MPLangError: _own_error, HTTPException: _other_error}

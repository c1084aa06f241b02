"""Application of a control socket: what runs at a worker, and how its owner stops it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Sequence
from typing import Annotated

from mplang_http.ext import Name
from msgspec import Meta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.owner_protocols import OwnerControl
from mplang_worker.control.peer import ControlRole
from mplang_worker.front.app import HANDLERS
from mplang_worker.front.engines import Engines
from mplang_worker.front.openapi import Api, Content
from mplang_worker.front.response_models import Refused
from mplang_worker.front.session import FrontSession
from mplang_worker.front.stopping import stop
from mplang_worker.front.threads import in_thread

Coordinator = Annotated[str, Meta(min_length=1, max_length=1000)]
Reason = Annotated[str, Meta(max_length=1000)]
ApprovalName = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Row = dict[str, object]
READERS = (ControlRole.AUDITOR, ControlRole.OPERATOR, ControlRole.OWNER)
STOPPERS = (ControlRole.OPERATOR, ControlRole.OWNER)
OWNERS = (ControlRole.OWNER,)
REVIEWERS = (ControlRole.AUDITOR, ControlRole.OWNER)
log = logging.getLogger("mplang.http.control")


def create_control_app(config: WorkerConfig, engines: Engines) -> Starlette:
    """Create the application of a worker's control commands; its server tells who has which role.

    Args:
        config: configuration of the worker.
        engines: its engines.
    """
    api = Api(
        title="mplang worker, control",
        summary="Shows and stops what runs.",
        description=str(__doc__),
        error=Content(Refused, description="error response"),
        errors=(403, 404, 409, 413, 422),
    )
    rows = Content(list[Row])

    async def stop_all(ending: Sequence[FrontSession], by: str, what: str, why: str) -> Response:
        text = f"the owner of {config.name} {what}" + (f": {why}" if why else "")
        for session in ending:
            log.warning("%s: the session %s of %s ends", by, session.key[1], session.key[0])
        await asyncio.gather(*(stop(engines, session, text, by) for session in ending))
        return JSONResponse([{"session": e.key[1], "coordinator": e.key[0]} for e in ending])

    def named(coordinator: str | None, name: str) -> list[FrontSession]:
        """Return the session of a name, which is that of one coordinator."""
        there = [each for each in engines.sessions if each.key[1] == name]
        meant = [each for each in there if coordinator in (None, each.key[0])]
        if not meant:
            raise RequestError(404, "unknown-session", f"no session {name!r} is open here")
        if len(meant) > 1:
            owners = ", ".join(repr(each.key[0]) for each in meant)
            raise RequestError(409, "ambiguous", f"{owners} have a session {name!r}: name one")
        return meant

    def owner_view() -> OwnerControl:
        if engines.gate.provider is None:
            raise RequestError(404, "no-gate", f"{config.name} has no gate: no rules, no approvals")
        return engines.gate.provider.owner

    @api.route("GET", "/v1/sessions", rows)
    async def sessions(request: Request) -> Response:
        """List the sessions that are open."""
        _check(request, READERS)
        return JSONResponse([_session_row(each) for each in engines.sessions])

    @api.route("DELETE", "/v1/sessions/{session}", rows)
    async def close(
        request: Request, session: Name, coordinator: Coordinator | None = None, reason: Reason = ""
    ) -> Response:
        """End a session, its engine and its MPC process, at once."""
        by = _check(request, STOPPERS)
        return await stop_all(named(coordinator, session), by, "closed its session", reason)

    @api.route("GET", "/v1/jobs", rows)
    async def jobs(request: Request) -> Response:
        """List the runs that have not ended."""
        _check(request, READERS)
        return JSONResponse([row for each in engines.sessions for row in _job_rows(each)])

    @api.route("DELETE", "/v1/jobs/{run}", rows)
    async def cancel(
        request: Request, run: Name, coordinator: Coordinator | None = None, reason: Reason = ""
    ) -> Response:
        """End a run, and with it all of its session, at once."""
        by = _check(request, STOPPERS)
        sessions = named(coordinator, run.rpartition("-")[0])
        if sessions[0].jobs.get(run) is None:
            raise RequestError(404, "unknown-job", f"there is no run {run!r} here")
        return await stop_all(sessions, by, f"cancelled run {run}", reason)

    @api.route("GET", "/v1/coordinators", rows)
    async def coordinators(request: Request) -> Response:
        """List coordinators: whether they are paused, and their failed runs."""
        _check(request, READERS)
        spent, paused = engines.budget.spent(), set(engines.paused)
        names = {*spent, *paused, *config.coordinators, *(e.key[0] for e in engines.sessions)}
        limit = engines.budget.limit
        listed = [
            {"coordinator": each, "paused": each in paused, "failures": spent.get(each, 0)}
            for each in sorted(names)
        ]
        return JSONResponse([{**row, "limit": limit} for row in listed])

    @api.route("PUT", "/v1/paused", rows)
    async def pause(request: Request, coordinator: Coordinator, reason: Reason = "") -> Response:
        """Refuse all runs of a coordinator until it is resumed, and end its sessions at once."""
        by = _check(request, OWNERS)
        _known(config, coordinator)
        try:
            await engines.paused.add(coordinator, by)
        finally:
            mine = [each for each in engines.sessions if each.key[0] == coordinator]
            ended = await stop_all(mine, by, f"paused {coordinator}", reason)
        return ended

    @api.route("DELETE", "/v1/paused", rows)
    async def resume(request: Request, coordinator: Coordinator) -> Response:
        """Resume a coordinator that was paused."""
        by = _check(request, OWNERS)
        if coordinator not in set(engines.paused):
            raise RequestError(404, "not-paused", f"{coordinator!r} is not paused here")
        await engines.paused.discard(coordinator, by)
        log.warning("%s: %s may run again", by, coordinator)
        return JSONResponse([{"coordinator": coordinator, "paused": False}])

    @api.route("GET", "/v1/rules", rows)
    async def rules(request: Request) -> Response:
        """List the files of the rules that count, with their texts."""
        _check(request, REVIEWERS)
        return JSONResponse(await in_thread(owner_view().rules))

    @api.route("GET", "/v1/approvals", rows)
    async def approvals(request: Request) -> Response:
        """List the approvals, and whether they count, whatever the program is."""
        _check(request, REVIEWERS)
        return JSONResponse(await in_thread(owner_view().approvals))

    @api.route("DELETE", "/v1/approvals/{approval}", rows)
    async def revoke(request: Request, approval: ApprovalName) -> Response:
        """Revoke an approval; what rests on it is stopped within a second."""
        by = _check(request, OWNERS)
        await in_thread(owner_view().revoke, approval, by)
        log.warning("%s: approval %s does not count any more", by, approval)
        return JSONResponse([{"approval": approval}])

    @api.route("DELETE", "/v1/failures", rows)
    async def reset(request: Request, coordinator: Coordinator) -> Response:
        """Forget the failed runs of a coordinator, once that is on record."""
        by = _check(request, STOPPERS)
        used = engines.budget.used(coordinator)
        if engines.gate.provider is not None:
            about = {"coordinator": coordinator, "by": by, "failures": used}
            await in_thread(engines.gate.provider.record, "failures reset", about)
        engines.budget.reset(coordinator)
        log.warning("%s: the %d failed runs of %s are forgotten", by, used, coordinator)
        return JSONResponse([{"coordinator": coordinator, "forgotten": used}])

    @api.route("POST", "/v1/drain", rows)
    async def drain(request: Request) -> Response:
        """Drain the worker: its runs end, then it does, as after SIGTERM."""
        return _signal(request, signal.SIGTERM, "drains")

    @api.route("POST", "/v1/reload", rows)
    async def reload(request: Request) -> Response:
        """Read the configuration again, as SIGHUP does."""
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # which would end the worker
            raise RequestError(409, "no-reload", f"{config.name} does not reload; restart it")
        return _signal(request, signal.SIGHUP, "reloads")

    return Starlette(routes=api.routes, exception_handlers=HANDLERS)


def _signal(request: Request, number: signal.Signals, what: str) -> Response:
    by = _check(request, (ControlRole.OPERATOR,))
    log.warning("%s: the worker %s", by, what)
    os.kill(os.getpid(), number)
    return JSONResponse([])


def _check(request: Request, roles: Sequence[ControlRole]) -> str:
    """Return who asks, and by which role; nothing here has a body.

    Raises:
        RequestError: it has none of the roles, or sends a body.
    """
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise RequestError(413, "body", "no request has a body here")
    mine = [role for role in roles if role in request.state.roles]
    if not mine:
        raise RequestError(
            403, "role", f"{request.state.peer} is not an {' or '.join(roles)} of this worker; its "
            "owner names who is, as `control` of the worker"
        )  # fmt: skip
    return f"{request.state.peer} as {mine[0]}"


def _known(config: WorkerConfig, coordinator: str) -> None:
    if config.tls is not None and coordinator not in config.coordinators:
        names = ", ".join(map(repr, config.coordinators))
        raise RequestError(
            404, "unknown-coordinator", f"no {coordinator!r} is among the coordinators: {names}"
        )


def _session_row(session: FrontSession) -> Row:
    now = time.monotonic()
    return {
        "session": session.key[1],
        "coordinator": session.key[0],
        "parties": session.parties,
        "runs": len(session.jobs.unfinished),
        "approvals": sorted(session.rests),
        "memory": session.memory,
        "age": round(now - session.opened, 1),
        "idle": round(now - session.seen, 1),
        "state": "ending" if session.ending else "linked" if session.joined else "opening",
    }


def _job_rows(session: FrontSession) -> list[Row]:
    now, rows = time.monotonic(), []
    for run in session.jobs.unfinished:
        job = session.jobs.get(run)
        if job is not None:
            rows.append({
                "run": run,
                "coordinator": session.key[0],
                "state": str(job.status.get("state")),
                "seconds": round(now - job.begun, 1),
                "approval": job.approval,
            })  # fmt: skip
    return rows

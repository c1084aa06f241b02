"""A worker's HTTP interface."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mplang_http import ipc
from mplang_http.config import WorkerConfig
from mplang_http.handshake import UPGRADE
from mplang_http.refusal import Refusal
from mplang_http.supervisor import Supervisor

__all__ = ["create_worker_app"]

PIECE = 1 << 20
BINARY = "application/octet-stream"
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the body, in hex")]
Wait = Annotated[float, Query(ge=0, le=60, description="how many seconds to wait for its end")]


def _body(what: str, kind: str = BINARY) -> dict[str, Any]:
    schema = {"type": "string", "format": "binary"} if kind == BINARY else {"type": "object"}
    content = {kind: {"schema": schema}}
    return {"requestBody": {"required": True, "description": what, "content": content}}


_ERROR = {
    "description": "It is not done; the body says why.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {
                        "type": "object",
                        "properties": {"code": {"type": "string"}, "text": {"type": "string"}},
                    }
                },
            }
        }
    },
}
_REFUSALS: dict[int | str, dict[str, Any]] = dict.fromkeys(
    (400, 403, 404, 409, 411, 413, 421, 422, 429, 503), _ERROR
)


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
        responses=_REFUSALS,
    )
    limits, doing = config.limits, _Doing(config, engine)
    _add_handlers(app)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Tell whether the worker is up; answers also while the engine is busy."""
        return {
            "name": config.name,
            "state": engine.state,
            "silence": round(engine.silence, 1),
            "restarts": engine.restarts,
        }

    @app.get("/facts")
    async def facts(request: Request) -> Any:
        """Tell versions, plugins and limits."""
        return await doing.ask(request, "facts")

    @app.get("/link", status_code=426, responses={101: {"description": "It is a link now."}})
    async def link() -> Response:
        """Become a link between workers: a connection's first request, with ``Upgrade``."""
        return _refused(Refusal(426, "upgrade", f"a link begins with Upgrade: {UPGRADE}"))

    @app.put("/v1/programs/{program}", openapi_extra=_body("the program"))
    async def program(request: Request, program: Digest) -> Any:
        """Give a program; it is verified, and held against what this worker allows."""
        body = await _read(request, limits.program, config)
        return await doing.ask(request, "program", body, name=program)

    @app.put("/v1/sessions/{session}", openapi_extra=_body("a SessionRequest", "application/json"))
    async def open_session(request: Request, session: Name) -> Any:
        """Open a session, or begin a new generation of it: has links to all parties then."""
        body = await _read(request, limits.request, config)
        return await doing.ask(request, "open", body, session=session)

    @app.delete("/v1/sessions/{session}")
    async def close_session(request: Request, session: Name) -> Any:
        """End a session: its jobs end, its values go."""
        return await doing.ask(request, "close", session=session)

    @app.post("/v1/sessions/{session}/release", openapi_extra=_body("names", "application/json"))
    async def release(request: Request, session: Name, names: list[str]) -> Any:
        """Let go of values, and renew the lease."""
        return await doing.ask(request, "release", session=session, names=names)

    @app.get("/v1/sessions/{session}/jobs")
    async def jobs(request: Request, session: Name) -> Any:
        """Tell of the jobs of a session."""
        return await doing.ask(request, "jobs", session=session)

    @app.post("/v1/sessions/{session}/jobs", openapi_extra=_body("a JobRequest in MessagePack"))
    async def submit(
        request: Request, session: Name, run: Annotated[str, Query()], wait: Wait = 0
    ) -> Any:
        """Run a program; answers when it has ended, or when the time is up."""
        body = await _read(request, limits.request, config)
        return await doing.job(request, session, run, wait, "submit", body)

    @app.get("/v1/sessions/{session}/jobs/{run}")
    async def status(request: Request, session: Name, run: Name, wait: Wait = 0) -> Any:
        """Tell of a job; answers when it has ended, or when the time is up."""
        return await doing.job(request, session, run, wait, "status")

    @app.delete("/v1/sessions/{session}/jobs/{run}")
    async def cancel(
        request: Request,
        session: Name,
        run: Name,
        reason: Annotated[str, Query(max_length=1000)] = "the coordinator cancelled it",
    ) -> Any:
        """End a job, here and at the other parties."""
        return await doing.ask(request, "cancel", session=session, run=run, reason=reason)

    @app.put("/v1/sessions/{session}/values/{value}", openapi_extra=_body("the value"))
    async def put(request: Request, session: Name, value: Name) -> Any:
        """Give a value."""
        body = await _read(request, limits.value, config)
        return await doing.ask(request, "put", body, session=session, name=value)

    @app.get(
        "/v1/sessions/{session}/values/{value}",
        response_class=Response,
        responses={200: {"content": {BINARY: {}}}},
    )
    async def get(request: Request, session: Name, value: Name) -> Response:
        """Get the data of a value that is plain."""
        _, file = await engine.call("get", doing.who(request), session=session, name=value)
        assert file is not None
        size = os.fstat(file).st_size
        return StreamingResponse(
            _pieces(file, size), media_type=BINARY, headers={"content-length": str(size)}
        )

    return app


class _Doing:
    """What routes have in common: who asks, and what the engine answers."""

    def __init__(self, config: WorkerConfig, engine: Supervisor) -> None:
        self._config = config
        self._engine = engine

    def who(self, request: Request) -> str:
        """Return the coordinator, which the certificate names."""
        who: str | None = getattr(request.state, "who", None)
        if self._config.tls is not None and who not in self._config.coordinators:
            raise Refusal(
                403, "no-coordinator", f"{who} is not among the coordinators of {self._config.name}"
            )
        return who or "local"

    async def ask(self, request: Request, method: str, body: ipc.Body = None, **args: Any) -> Any:
        """Have the engine do something for the one who asks."""
        try:
            who = self.who(request)
        except Refusal:
            if isinstance(body, int):
                os.close(body)
            raise
        done, _ = await self._engine.call(method, who, body, **args)
        return JSONResponse(done)

    async def job(
        self,
        request: Request,
        session: str,
        run: str,
        wait: float,
        method: str,
        body: ipc.Body = None,
    ) -> Any:
        """Ask of a job, and wait for its end."""
        ended = self._engine.expect((self.who(request), session, run))
        try:
            who = self.who(request)
            done, _ = await self._engine.call(method, who, body, session=session, run=run)
            if done["ended"] is None and wait:
                with contextlib.suppress(TimeoutError):
                    done = await asyncio.wait_for(asyncio.shield(ended), wait)
        finally:
            ended.cancel()
        over = done["state"] not in ("queued", "running")
        return JSONResponse(done, 200 if over else 202)


async def _read(request: Request, limit: int, config: WorkerConfig) -> ipc.Body:
    """Read a body of a length that was told, and is allowed, into memory that the engine shares."""
    told = request.headers.get("content-length")
    if told is None or not told.isdecimal():
        raise Refusal(411, "length", "a body has a Content-Length")
    size = int(told)
    if size > limit:
        raise Refusal(413, "too-large", f"at most {limit} bytes are taken here, not {size}")
    small, file, count = bytearray(), None, 0
    if size > ipc.INLINE:
        file = ipc.write_file(())
    try:
        stream = request.stream()
        while count < size:
            piece = await asyncio.wait_for(anext(stream), config.timeouts.body)
            count += len(piece)
            if file is None:
                small += piece
            else:
                os.write(file, piece)
    except BaseException as error:
        if file is not None:
            os.close(file)
        if isinstance(error, TimeoutError | StopAsyncIteration | ClientDisconnect):
            raise Refusal(400, "short", "the body did not come") from None
        raise
    return bytes(small) if file is None else file


async def _pieces(file: int, size: int) -> AsyncIterator[memoryview]:
    """Give a file in pieces, without a copy, and close it."""
    with mmap.mmap(file, size, prot=mmap.PROT_READ) as data:
        os.close(file)
        view = memoryview(data)
        try:
            for begin in range(0, size, PIECE):
                with view[begin : begin + PIECE] as piece:
                    yield piece
        finally:
            view.release()


def _refused(refusal: Refusal) -> JSONResponse:
    error = {"code": refusal.code, "text": refusal.text}
    headers = {"Upgrade": UPGRADE} if refusal.status == 426 else None
    return JSONResponse({"error": error}, refusal.status, headers)


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refusal(request: Request, error: Refusal) -> Response:
        return _refused(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        lines = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        return _refused(Refusal(422, "invalid", "\n".join(lines)))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        response = _refused(Refusal(error.status_code, "http", str(error.detail)))
        response.headers.update(error.headers or {})
        return response

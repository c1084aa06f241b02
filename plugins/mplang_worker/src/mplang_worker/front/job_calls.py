"""Calls about jobs, which the front answers by itself while an engine is busy."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.engine_process import ENGINE_ENDED
from mplang_worker.front.engines import Engines
from mplang_worker.front.jobs import KnownJob
from mplang_worker.front.live_config import check_peers
from mplang_worker.front.session import FrontSession
from mplang_worker.wire import ipc
from mplang_worker.wire.requests import read_names

MANY = 8  # unanswered calls after which an engine is not asked for the status of a job
BUSY = 1.0  # seconds after which the front answers for an engine


class JobCalls:
    """Calls about jobs.

    Args:
        config: configuration of the worker.
        engines: engines of the sessions.
    """

    def __init__(self, config: WorkerConfig, engines: Engines) -> None:
        self._config = config
        self._engines = engines

    async def submit(
        self, coordinator: str, name: str, run: str, body: ipc.Body
    ) -> tuple[dict[str, Any], KnownJob]:
        """Submit a job, and return its status, which is ``queued`` while the engine is busy.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            run: name of the run.
            body: a JobRequest in MessagePack.

        Raises:
            RequestError: the job is refused.
            ShutdownError: the worker is being shut down.
        """
        session = self._engines.find(coordinator, name)
        if session.jobs.get(run) is None:
            self._engines.refuse_if_draining()
            check_peers(session, self._config)
            self._engines.paused.check(coordinator)
        key = (coordinator, session.link, run)
        if self._engines.active_jobs(coordinator) >= self._config.quotas.jobs:
            raise RequestError(
                429,
                "busy",
                f"{self._config.quotas.jobs} jobs of {coordinator} have not ended; try again",
            )
        reserved = self._engines.budget.begin(key)
        job = session.jobs.begin(run)
        submitting = self._engines.begin(self._submit(session, run, body, reserved))
        submitting.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait([submitting], timeout=BUSY)
        return submitting.result() if submitting.done() else job.status, job

    async def _submit(
        self, session: FrontSession, run: str, body: ipc.Body, reserved: bool
    ) -> dict[str, Any]:
        submitted: dict[str, Any] = {}
        try:
            submitted = await self._engines.gate.submit(session, run, body)
            logs = submitted.get("logs")
            call = self._engines.call("submit", *session.key, body, run=run, logs=logs)
            done: dict[str, Any] = await call
        except RequestError as error:
            # whether the run ended its engine is counted where the session is forgotten
            await self._engines.gate.take_back(session, run, submitted)
            await self._engines.gate.refused(session, {"run": run}, error)
            if reserved and error.code != ENGINE_ENDED:
                self._engines.budget.end((session.key[0], session.link, run), failed=False)
                session.jobs.refuse(run, error)
            raise
        session.jobs.update(done)
        return session.jobs.judged(run, done)

    async def status(
        self, coordinator: str, name: str, run: str
    ) -> tuple[dict[str, Any], KnownJob | None]:
        """Return the status of a job; the last one that is known while the engine is busy.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            run: name of the run.

        Raises:
            RequestError: there is no such job, or it was refused.
        """
        session = self._engines.find(coordinator, name)
        job = session.jobs.get(run)
        if job is not None and not job.accepted.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY):
                    await job.accepted.wait()
            if job.refused is not None:
                raise job.refused
            if not job.accepted.is_set():
                return job.status, job
        process = session.process
        busy = process is not None and process.pending >= MANY
        if job is not None and (job.ended.is_set() or job.clock is not None or busy):
            return job.status, job
        asking = self._engines.call("status", coordinator, name, run=run)
        if job is None:
            return session.jobs.judged(run, await asking), None
        try:
            done = await asyncio.wait_for(asking, BUSY)
        except TimeoutError:
            return job.status, job
        job.update(job.status | session.jobs.judged(run, done))
        return job.status, job

    def unfinished(self, coordinator: str) -> list[dict[str, str]]:
        """Return the jobs of all sessions of a coordinator that have not ended."""
        mine = (each for each in self._engines.sessions if each.key[0] == coordinator)
        return [
            {"run": run, "session": session.key[1], "state": str(job.status.get("state"))}
            for session in mine
            for run in session.jobs.unfinished
            if (job := session.jobs.get(run)) is not None
        ]

    async def cancel(self, coordinator: str, name: str, run: str, reason: str) -> dict[str, Any]:
        """Cancel a job; its engine is ended if it does not end.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            run: name of the run.
            reason: text for the job's error.

        Returns:
            The status of the job.

        Raises:
            RequestError: there is no such session, or the run is not of it.
        """
        session = self._engines.find(coordinator, name)
        session.jobs.cancel(run)
        asking = self._engines.call("cancel", coordinator, name, run=run, reason=reason)
        job = session.jobs.get(run)
        if job is None:
            return session.jobs.judged(run, dict(await asking))
        with contextlib.suppress(TimeoutError):
            return session.jobs.judged(run, dict(await asyncio.wait_for(asking, BUSY)))
        return job.status

    async def release(self, coordinator: str, name: str, body: Any) -> dict[str, Any]:
        """Release values, and renew the lease of the session.

        Args:
            coordinator: name of the coordinator.
            name: name of the session.
            body: list of names in JSON, perhaps empty.

        Returns:
            The number of values that were released, 0 while the engine is busy; and whether the
            session is linked: one whose MPC process has ended is to be opened again, after the step
            if its run has a clock.

        Raises:
            RequestError: there is no such session, or the body is malformed.
        """
        linked = {"linked": self._engines.find(coordinator, name).has_mpc}
        if not read_names(body):
            return {"released": 0, **linked}
        asking = asyncio.ensure_future(self._engines.call("release", coordinator, name, body))
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        with contextlib.suppress(TimeoutError):
            return {**await asyncio.wait_for(asyncio.shield(asking), BUSY), **linked}
        return {"released": 0, **linked}

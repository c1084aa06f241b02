"""MPC processes of a worker's sessions: started, introduced to their engines, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import log_cause, log_context
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.engine_start import EngineStarter
from mplang_worker.front.session import FrontSession
from mplang_worker.front.session_credentials import SessionCredentials
from mplang_worker.front.slow_start import wait_for_start
from mplang_worker.front.warm_process import WarmProcess
from mplang_worker.tls.credentials import Credential

log = logging.getLogger("mplang.http.front")


class FrontMpc:
    """What starts the MPC processes of a worker's sessions.

    Args:
        name: name of the worker.
        warm: the process that forks them.
        starter: what starts processes.
        credentials: credentials of the sessions.
        links: takes by the name of a link's end whose session it is of.
        begin: starts work in the background.

    Attributes:
        crashes: number of MPC processes that ended unexpectedly.
    """

    def __init__(
        self,
        name: str,
        warm: WarmProcess,
        starter: EngineStarter,
        credentials: SessionCredentials,
        links: dict[str, FrontSession],
        begin: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        self.crashes = 0
        self._name, self._warm, self._starter = name, warm, starter
        self._credentials, self._links, self._begin = credentials, links, begin

    def check(self, services: Collection[str]) -> None:
        """Refuse native services that are not installed here.

        Args:
            services: their names.

        Raises:
            RequestError: one is not.
        """
        there = self._warm.info.get("native", [])
        for name in services:
            if name not in there:
                raise RequestError(
                    422,
                    "native",
                    f"worker {self._name} has no native service {name!r}; it has "
                    f"{', '.join(there) or 'none'}. Its owner has to install its package, and "
                    "to name that in the worker's `plugins`",
                )

    async def open(self, session: FrontSession, services: Collection[str]) -> Credential | None:
        """Start the MPC process of a session, if it needs one and has none.

        Args:
            session: the session; its engine may be starting.
            services: names of the native services that are asked for.

        Returns:
            The credential of the MPC process; ``None`` if the session needs none.

        Raises:
            RequestError: it does not start.
        """
        opening = self._begin(self._open(session, services))
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        # whoever asks may go; the process is not left alone
        credential: Credential | None = await asyncio.shield(opening)
        return credential

    async def _open(self, session: FrontSession, services: Collection[str]) -> Credential | None:
        mpc = session.mpc
        async with mpc.starting:
            wanted = mpc.services.union(services)
            if not wanted:
                return None
            if not session.has_mpc or wanted != mpc.services:
                await self.end(session, "another one takes its place")
                mpc.services = wanted
                try:
                    await self._start(session)
                except (OSError, TimeoutError) as error:
                    await self.end(session, f"it does not start: {error}")
                    raise RequestError(
                        503, "starting", "an MPC process does not start; try again"
                    ) from None
                except BaseException:  # its engine does not start
                    await self.end(session, "it is not needed")
                    raise
        return mpc.credential

    async def _start(self, session: FrontSession) -> None:
        mpc, link = session.mpc, secrets.token_hex(16)
        ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def on_event(message: dict[str, Any], file: int | None) -> None:
            if file is not None:
                os.close(file)
            if message["event"] == "ready" and not ready.done():
                ready.set_result(message["key"])

        def on_end() -> None:
            if not ready.done():
                ready.set_exception(ConnectionError("it has ended"))
            self._begin(self._lost(session, process))

        process = await self._starter.start_mpc(session, link, on_event, on_end)
        mpc.process, mpc.link, mpc.credentials, mpc.ends = process, link, (), ()
        self._links[link] = session
        assert session.started is not None
        await asyncio.shield(session.started)  # its engine is there
        key = await wait_for_start(ready, "an MPC process")
        if session.ending or session.process is None:
            raise ConnectionError("the session has ended")
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told = {"services": sorted(mpc.services)}
        session.process.tell({"call": "mpc", "args": told}, mine.detach())
        process.tell({"call": "engine"}, theirs.detach())
        mpc.baseline = process.usage().memory
        mpc.credential = self._credentials.issue(session, "mpc", link, key)

    async def _lost(self, session: FrontSession, process: EngineProcess) -> None:
        """Take notice that an MPC process has ended by itself; another one serves the next run.

        It is told at a step of the clock of its run, as that run's end is.
        """
        if session.mpc.process is not process or session.ending:
            return
        session.mpc.process = None
        self._links.pop(session.mpc.link, None)
        await session.jobs.wait_for_step()
        self.crashes += 1
        why = await process.end("")
        with log_cause(session.key[0]), log_context(session.key[1]):
            log.error("the MPC process of a session has ended: %s", why)

    def replace(self, session: FrontSession) -> None:
        """End the MPC process of a session that hangs; another one serves the next run."""
        if session.mpc.process is not None:
            session.mpc.process.kill()  # its end is noticed

    async def end(self, session: FrontSession, why: str) -> None:
        """End the MPC process of a session, if it has one.

        Args:
            session: the session.
            why: text of the error of calls that wait for it.
        """
        process, session.mpc.process = session.mpc.process, None
        self._links.pop(session.mpc.link, None)
        if process is not None:
            with contextlib.suppress(OSError):
                await process.end(why, kill=True)

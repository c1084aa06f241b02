"""MPC processes of a worker's sessions: started, introduced to their engines, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

from mplang_worker.base.errors import RequestError
from mplang_worker.base.logs import log_cause, log_context
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.engine_start import EngineStarter
from mplang_worker.front.session import FrontSession, Ready, SessionMpc, fail_start
from mplang_worker.front.session_credentials import SessionCredentials
from mplang_worker.front.slow_start import wait_for_start
from mplang_worker.front.warm_process import WarmProcess
from mplang_worker.tls.credentials import Credential

log = logging.getLogger("mplang.http.front")


class FrontMpc:
    """Starter of the MPC processes of a worker's sessions.

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
        there = self._warm.info.get("native")
        for name in services:
            if there is not None and name not in there:  # else nothing is started here, either
                raise RequestError(
                    422,
                    "native",
                    f"worker {self._name} has no native service {name!r}; it has "
                    f"{', '.join(there) or 'none'}. Its owner has to install its package, and "
                    "to name that in the worker's `plugins`",
                )

    async def open(self, session: FrontSession, services: Collection[str]) -> dict[str, Credential]:
        """Start the MPC processes of a session that it needs and has not.

        Args:
            session: the session; its engine may be starting.
            services: names of all native services that it needs from now on.

        Returns:
            The credentials of their MPC processes that have links, by native service.

        Raises:
            RequestError: one does not start.
        """
        session.needed = frozenset(services)
        apart = [session.natives.setdefault(name, SessionMpc(name)) for name in session.needed]
        opening = self._begin(self._open(session, apart))
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(opening)  # whoever asks may go; the processes are not left alone
        return {each.service: each.credential for each in apart if each.credential is not None}

    async def _open(self, session: FrontSession, apart: Sequence[SessionMpc]) -> None:
        await asyncio.gather(*(self._open_one(session, mpc) for mpc in apart))

    async def _open_one(self, session: FrontSession, mpc: SessionMpc) -> None:
        async with mpc.starting:
            if session.natives.setdefault(mpc.service, mpc) is not mpc:
                raise RequestError(503, "starting", "another request opens the session; try again")
            await session.jobs.wait_for_stopped()  # one that fails may end the process at its end
            if await _is_there(mpc) or (mpc.link and session.jobs.has_clock):
                return  # the end of one is told at the step of the clock of its run
            await self._end(mpc, "another one takes its place")
            try:
                await self._start(session, mpc)
            except (OSError, TimeoutError) as error:
                del session.natives[mpc.service]  # the session is as it was before
                await self._end(mpc, f"it does not start: {error}")
                raise RequestError(
                    503, "starting", "an MPC process does not start; try again"
                ) from None
            except BaseException:  # its engine does not start
                del session.natives[mpc.service]
                await self._end(mpc, "it is not needed")
                raise

    async def _start(self, session: FrontSession, mpc: SessionMpc) -> None:
        link = secrets.token_hex(16)
        ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        mpc.ready = ready

        def on_event(message: Ready, file: int | None) -> None:
            if file is not None:
                os.close(file)
            if message["event"] == "ready" and mpc.ready is not None and not mpc.ready.done():
                mpc.ready.set_result(message)

        def on_end() -> None:
            fail_start(mpc.ready, "it has ended")
            self._begin(self._lost(session, mpc, process))

        process = await self._starter.start_mpc(session, mpc.service, link, on_event, on_end)
        mpc.process, mpc.link, mpc.credential, mpc.credentials, mpc.ends = (
            process,
            link,
            None,
            (),
            (),
        )
        self._links[link] = session
        assert session.started is not None
        await asyncio.shield(session.started)  # its engine is there
        declared = await wait_for_start(ready, "an MPC process")  # before it hears of any peer
        if session.ending or session.process is None:
            raise ConnectionError("the session has ended")
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        session.process.tell({"call": "mpc", "args": {"service": mpc.service}}, mine.detach())
        process.tell({"call": "engine"}, theirs.detach())
        mpc.baseline = process.usage().memory
        if declared["links"]:
            key = declared["key"]
            mpc.credential = self._credentials.issue(session, "mpc", link, key, mpc.service)
        if declared["plain"]:
            with log_cause(session.key[0]), log_context(session.key[1]):
                log.info(
                    "the MPC process of the native service %s gets plain data of this party",
                    mpc.service,
                )

    async def _lost(self, session: FrontSession, mpc: SessionMpc, process: EngineProcess) -> None:
        """Take notice that an MPC process has ended by itself; another one serves the next run.

        It is told at a step of the clock of its run, as that run's end is.
        """
        if mpc.process is not process or session.ending:
            return
        mpc.process = None
        self._links.pop(mpc.link, None)
        await session.jobs.wait_for_step()
        self.crashes += 1
        why = await process.end("")
        with log_cause(session.key[0]), log_context(session.key[1]):
            log.error("the MPC process of a session, for %s, has ended: %s", mpc.service, why)

    def replace(self, session: FrontSession, service: str) -> None:
        """End an MPC process of a session that hangs; another one serves the next run.

        Args:
            session: the session.
            service: its native service, as the engine says.
        """
        mpc = session.natives.get(service)
        if mpc is not None and mpc.process is not None:
            mpc.process.kill()  # its end is noticed

    async def end(self, session: FrontSession, why: str) -> None:
        """End the MPC processes of a session.

        Args:
            session: the session.
            why: text of the error of calls that wait for them.
        """
        for mpc in list(session.natives.values()):
            await self._end(mpc, why)

    async def _end(self, mpc: SessionMpc, why: str) -> None:
        process, mpc.process = mpc.process, None
        self._links.pop(mpc.link, None)
        mpc.link = ""
        fail_start(mpc.ready, why)
        if process is not None:
            with contextlib.suppress(OSError):
                await process.end(why, kill=True)


async def _is_there(mpc: SessionMpc) -> bool:
    """Return whether an MPC process is there; one may have ended of which no notice was taken yet.

    Peers that were told of such a one would try to link to it until they give up.
    """
    process = mpc.process
    if process is None or process.lost:  # whose end nobody would tell again
        return False
    mpc.ready = asyncio.get_running_loop().create_future()
    process.tell({"call": "ready"})
    try:
        await wait_for_start(mpc.ready, "an MPC process")
    except (OSError, TimeoutError):
        return False
    return mpc.process is process

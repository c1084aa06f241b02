"""Start of engines: forked from the warm process, limited, and held back while they crash."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from mplang_http.ext import MAX_HEAD, MPC_ENDED

from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.engine_process import ENGINE_ENDED, EngineProcess, usage
from mplang_worker.front.log_quota import LogQuota
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.front.session import FrontSession
from mplang_worker.front.warm_process import WarmProcess
from mplang_worker.process.backoff import Backoff
from mplang_worker.process.cgroups import Cgroups, EngineCgroup
from mplang_worker.process.forks import Child
from mplang_worker.process.session_argument import EngineArgument
from mplang_worker.tls.credentials import Role
from mplang_worker.wire import ipc


class EngineStarter:
    """Starter of engines.

    Args:
        config: configuration of the worker.
        warm: the process that forks them.
        cgroups: cgroups of the engines; ``None`` where none can be made.
        quota: quota of the worker's own log.
        gated: whether a gate decides what they run.
    """

    def __init__(
        self,
        config: WorkerConfig,
        warm: WarmProcess,
        cgroups: Cgroups | None,
        quota: LogQuota,
        *,
        gated: bool,
    ) -> None:
        self._config, self._warm, self._cgroups, self._gated = config, warm, cgroups, gated
        self._quota = quota
        self._backoff = Backoff()
        self._paused = 0.0  # time until which no engine is started

    @property
    def state(self) -> str:
        """State of the warm process; while engines do not start, ``starting``."""
        return "starting" if time.monotonic() < self._paused else self._warm.state

    def failed(self) -> None:
        """Start no engines for a while, ever longer as they end before they are ready."""
        if self.state == "ready":  # those that were started meanwhile count as one
            self._paused = time.monotonic() + self._backoff.ended()

    def works(self) -> None:
        """Take notice that an engine was ready."""
        self._backoff.reset()

    def free_cores(self, sessions: Iterable[FrontSession]) -> list[int]:
        """Return the cores for another coordinator: those with the fewest sessions of others.

        Args:
            sessions: the sessions that are open.
        """
        count = self._config.quotas.cores
        if count is None:
            return []
        used = Counter(core for session in sessions for core in session.cores)
        return sorted(sorted(os.sched_getaffinity(0)), key=lambda core: used[core])[:count]

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes other quotas count for engines that start; see `LiveConfig`."""

        def commit() -> None:
            self._quota.set_limit(after.quotas.log)
            if self._cgroups is not None:
                self._cgroups.set_quotas(after.quotas)

        return commit

    async def start(
        self,
        session: FrontSession,
        on_event: Callable[[dict[str, Any], int | None], None],
        on_end: Callable[[], object],
    ) -> None:
        """Fork the engine of a session.

        Args:
            session: the session.
            on_event: called with each event of the engine.
            on_end: called when the engine has closed its socket.

        Raises:
            OSError: it cannot be forked.
        """
        session.process = await self._fork(session, "engine", session.link, on_event, on_end)

    async def start_mpc(
        self,
        session: FrontSession,
        service: str,
        link: str,
        on_event: Callable[[dict[str, Any], int | None], None],
        on_end: Callable[[], object],
    ) -> EngineProcess:
        """Fork an MPC process of a session.

        Args:
            session: the session.
            service: the native service that it runs.
            link: name of its end of the links.
            on_event: called with each event of the process.
            on_end: called when it has closed its socket.

        Returns:
            The process.

        Raises:
            OSError: it cannot be forked.
        """
        return await self._fork(session, "mpc", link, on_event, on_end, service)

    async def _fork(
        self,
        session: FrontSession,
        role: Role,
        link: str,
        on_event: Callable[[dict[str, Any], int | None], None],
        on_end: Callable[[], object],
        service: str = "",
    ) -> EngineProcess:
        config, request = self._config, session.request
        argument = EngineArgument(
            config=config.for_engines,
            coordinator=session.key[0],
            session=session.key[1],
            rank=request.rank,
            parties=session.parties,
            timeout=min(config.timeouts.message, request.timeout or float("inf")),
            link=link,
            tls=config.tls is not None,
            service=service,
            folder=self._warm.folders.of(link) if service else "",
            cores=session.cores,
            gated=self._gated,
            sections=config.asked_sections,
        )
        mine, theirs = ipc.channel()
        with theirs:
            try:
                child = await self._warm.fork({role: argument}, theirs.fileno())
                # before there is a process that a request or a link could be passed to
                cgroup = await self._limit_memory(session.key[0], link, child)
            except BaseException:
                mine.close()
                raise
        name, code = (
            ("the engine", ENGINE_ENDED) if role == "engine" else ("the MPC process", MPC_ENDED)
        )
        return EngineProcess(
            child,
            mine,
            f"{name} of worker {config.name}",
            ProcessLog.of(session.key, config, self._quota),
            config.limits.value + MAX_HEAD,
            on_event,
            on_end,
            cgroup,
            code,
            functools.partial(self._warm.folders.remove, link),
        )

    async def _limit_memory(self, coordinator: str, link: str, child: Child) -> EngineCgroup | None:
        """Put a process into a cgroup, where one can be made."""
        if self._cgroups is None:
            return None
        place = functools.partial(
            self._cgroups.place, coordinator, link, child.pid, usage(child.pid).memory
        )
        # not in the event loop, as the kernel may wait for a grace period
        return await asyncio.get_running_loop().run_in_executor(None, place)

"""Runs that the owner of a worker stops: their sessions end at once, and what they made is gone.

A session ends whole, with its engine: what other runs of it made may be made of what the stopped
one did.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Coroutine, Iterator, Sequence, Set
from typing import Protocol

from mplang_core.ext import AdmissionError
from mplang_worker.base.errors import RequestError
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.session import FrontSession
from mplang_worker.front.stop_notices import StopNotices
from mplang_worker.front.threads import in_thread

INTERVAL = 0.25  # seconds between two looks at the approvals that were revoked
log = logging.getLogger("mplang.http.front")


class PausedCoordinators:
    """Coordinators that the owner lets run nothing; a worker with a gate remembers them.

    Args:
        name: name of the worker, for errors.
        gate: its gate.
    """

    def __init__(self, name: str, gate: FrontGate) -> None:
        self._name, self._gate = name, gate
        self._paused = set[str]() if gate.provider is None else set(gate.provider.stops.paused())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._paused))

    def check(self, coordinator: str) -> None:
        """Refuse what a coordinator begins while it is paused.

        Raises:
            RequestError: it is.
        """
        if coordinator in self._paused:
            raise RequestError(
                403,
                "paused",
                f"{coordinator} is paused by the owner of {self._name}, and runs nothing here "
                "until it is resumed",
            )

    async def add(self, coordinator: str, by: str) -> None:
        """Pause a coordinator, whether or not that can be recorded.

        Raises:
            AdmissionError: it is not on record, and not remembered after a restart.
        """
        self._paused.add(coordinator)
        await self._record(coordinator, by, paused=True)

    async def discard(self, coordinator: str, by: str) -> None:
        """Resume a coordinator, once that is on record.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        await self._record(coordinator, by, paused=False)
        self._paused.discard(coordinator)

    async def _record(self, coordinator: str, by: str, *, paused: bool) -> None:
        if self._gate.provider is not None:
            await in_thread(
                functools.partial(self._gate.provider.stops.pause, paused=paused), coordinator, by
            )


class Stoppable(Protocol):
    """Sessions of a worker, as their owner stops them."""

    gate: FrontGate
    notices: StopNotices

    def begin(self, work: Coroutine[object, object, None]) -> object:
        """Start work that goes on."""

    @property
    def sessions(self) -> Sequence[FrontSession]:
        """The sessions that are open."""

    async def end_now(self, session: FrontSession, why: str) -> None:
        """End a session and its processes at once."""


async def stop(
    engines: Stoppable, session: FrontSession, why: str, by: str, *, elsewhere: bool = False
) -> None:
    """End a session at once, withdraw what its runs have stored, and have that on record, once.

    No end waits for the log: one that cannot be written stops nobody who stops a run.

    Args:
        engines: the sessions of the worker.
        session: the session.
        why: why, as its coordinator is told.
        by: who stops it, for the log.
        elsewhere: whether it was stopped at another party, which tells all of them.
    """
    if session.stopping is None:
        session.stopping = asyncio.ensure_future(_stop(engines, session, why, by, elsewhere))
    await asyncio.shield(session.stopping)


async def _stop(
    engines: Stoppable, session: FrontSession, why: str, by: str, elsewhere: bool
) -> None:
    if not elsewhere:
        engines.begin(engines.notices.send(session, why))
    runs = session.begun.union(session.jobs.unfinished)
    # at the same time, so that no other session loads meanwhile what a run of it has stored
    withdrawing = asyncio.ensure_future(_withdraw(engines, session, runs, why, by))
    try:
        await engines.end_now(session, why)
    except BaseException:
        session.stopping = None  # it may be stopped again
        raise
    await withdrawing


async def _withdraw(
    engines: Stoppable, session: FrontSession, runs: Set[str], why: str, by: str
) -> None:
    if engines.gate.provider is None:
        return
    about = {"session": session.link, "why": why, "by": by}
    try:
        await in_thread(engines.gate.provider.stops.stop, session.key[0], runs, about)
    except AdmissionError as error:
        log.error("a run was stopped, and that is not logged: %s", error)


async def watch_revocations(engines: Stoppable, name: str) -> None:
    """Stop what rests on approvals that are revoked, by another process, too; for good.

    Args:
        engines: the sessions of the worker.
        name: name of the worker.
    """
    while engines.gate.provider is not None:
        await asyncio.sleep(INTERVAL)
        resting = [each for each in engines.sessions if each.rests or each.loaded]
        if not resting:
            continue
        try:
            revoked = await in_thread(engines.gate.provider.stops.revoked)
        except AdmissionError:  # which is logged, and nothing begins meanwhile
            continue
        ending = [_stop_resting(engines, each, set(revoked), name) for each in resting]
        for error in await asyncio.gather(*ending, return_exceptions=True):
            if error is not None:  # such as of a sink that is not ours; others are still watched
                log.error("a session was not stopped as it should be", exc_info=error)


async def _stop_resting(
    engines: Stoppable, session: FrontSession, revoked: set[str], name: str
) -> None:
    """Stop a session that rests on a revoked approval, or has loaded what is withdrawn."""
    for approval in sorted(revoked & session.rests):
        why = f"the owner of {name} revoked approval {approval}, on which a run of it rests"
        await stop(engines, session, why, "revoke")
        return
    if session.loaded and engines.gate.provider is not None:
        lineage, loaded = engines.gate.provider.lineage, frozenset(session.loaded)
        if await in_thread(lineage.withdrawn, session.key[0], loaded):
            why = f"it has loaded what was withdrawn at {name}, since an owner stopped what made it"
            await stop(engines, session, why, "revoke")

"""Watch over the sessions of a worker: those that are left alone, or use more than they may."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Protocol

from mplang_worker.base.config import Quotas, WorkerConfig
from mplang_worker.front.session import FrontSession
from mplang_worker.process.cgroups import quota_excess

INTERVAL = 0.25  # seconds
log = logging.getLogger("mplang.http.front")


class Watched(Protocol):
    """Sessions of a worker, as the watch needs them."""

    @property
    def sessions(self) -> Sequence[FrontSession]:
        """The sessions that are open."""

    def check_warm(self) -> None:
        """Start another warm process if it has ended."""

    def end_soon(self, session: FrontSession, why: str, *, kill: bool = False) -> None:
        """End a session; at once, and as one that has failed, if it is to be killed."""


async def watch(config: WorkerConfig, watched: Watched) -> None:
    """End sessions whose coordinator is gone, or whose engine passes its limits; for good.

    Args:
        config: configuration of the worker.
        watched: its sessions.
    """
    while True:
        await asyncio.sleep(min(INTERVAL, config.timeouts.lease / 4))
        watched.check_warm()
        for session in watched.sessions:
            try:
                _look_at(session, config, watched)
            except Exception:  # the others are still watched
                log.exception("a session cannot be watched")
        _share_memory(config.quotas, watched)


def _look_at(session: FrontSession, config: WorkerConfig, watched: Watched) -> None:
    lease = config.timeouts.lease
    if session.ending or session.process is None:
        return
    if time.monotonic() - session.seen > lease:
        watched.end_soon(session, f"the coordinator was silent for {lease:g} s")
    elif why := session.excess(config.limits, config.timeouts):
        watched.end_soon(session, f"its engine was ended: {why}", kill=True)


def _share_memory(quotas: Quotas, watched: Watched) -> None:
    """End the largest engine of a coordinator whose engines use more than its quota."""
    by_coordinator: dict[str, list[FrontSession]] = {}
    for session in watched.sessions:
        if not session.ending:
            by_coordinator.setdefault(session.key[0], []).append(session)
    for sessions in by_coordinator.values():
        if sum(session.memory for session in sessions) > quotas.memory:
            largest = max(sessions, key=lambda session: session.memory)
            why = f"its engine was ended: {quota_excess(quotas)}"
            watched.end_soon(largest, why, kill=True)

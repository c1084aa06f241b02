"""Expiry of kept values: sessions that are older than the owner's rule end, on record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Protocol

from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.retention import EXPIRED
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread

INTERVAL = 60.0  # seconds between two looks
RULE = "retention.kept"
log = logging.getLogger("mplang.http.front")


class Aging(Protocol):
    """Sessions of a worker, as their expiry needs them."""

    @property
    def gate(self) -> FrontGate:
        """What has expiries on record."""

    @property
    def sessions(self) -> Sequence[FrontSession]:
        """The sessions that are open."""

    def end_soon(self, session: FrontSession, why: str) -> None:
        """End a session without waiting."""


async def watch_kept_values(config: WorkerConfig, engines: Aging) -> None:
    """End sessions that have expired; for good.

    Args:
        config: configuration of the worker, which may change.
        engines: its sessions.
    """
    while True:
        await expire_sessions(config, engines, time.monotonic())
        await asyncio.sleep(INTERVAL)


async def expire_sessions(config: WorkerConfig, engines: Aging, now: float) -> None:
    """End the sessions that have expired, each once that is on record.

    Runs under way end, too, or a coordinator could keep a session by them.

    Args:
        config: configuration of the worker.
        engines: its sessions.
        now: the time, of :func:`time.monotonic`.
    """
    keeps, days = config.retention.seconds, config.retention.kept
    if keeps is None:
        return
    for session in engines.sessions:
        if session.ending or now - session.opened < keeps:
            continue
        why = f"{config.name} keeps values of a session for {days} ({RULE}); open another one"
        what = {"what": "session with the values that it kept", "session": session.link}
        about = {**what, "rule": f"{RULE}: {days}", "count": 1, "coordinator": session.key[0]}
        try:
            if engines.gate.provider is not None:
                await in_thread(engines.gate.provider.note, EXPIRED, about)
        except AdmissionError as error:
            log.error("a session has expired, which cannot be logged: %s", error)
            return
        log.info("a session ends: %s", why)
        engines.end_soon(session, why)

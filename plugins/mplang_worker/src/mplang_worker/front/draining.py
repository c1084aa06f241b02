"""Shutdown of a worker on SIGTERM: no new sessions and jobs, and time for those that run."""

from __future__ import annotations

import asyncio
import logging

from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.engines import Engines
from mplang_worker.front.service_manager import notify

INTERVAL = 0.05  # seconds between two looks at what runs
SETTLE = 1.0  # seconds that coordinators have to fetch results, and to ask again
TELL = 2.0  # seconds that coordinators, who ask every second, have to hear of the end
log = logging.getLogger("mplang.http.front")


async def drain(config: WorkerConfig, engines: Engines) -> None:
    """Drain a worker: wait for its jobs, then end its sessions.

    Args:
        config: configuration of the worker; ``timeouts.drain`` bounds the time of the jobs.
        engines: engines of the sessions.
    """
    engines.draining = True
    notify("STOPPING=1")
    patience = config.timeouts.drain
    log.info("SIGTERM: no new sessions and runs; those that run have %g s to end", patience)
    loop = asyncio.get_running_loop()
    begun = busy = loop.time()
    while len(engines) and loop.time() - busy < SETTLE and loop.time() - begun < patience:
        await asyncio.sleep(INTERVAL)
        if engines.busy:
            busy = loop.time()
    why = f"worker {config.name} was shut down by its owner"
    late = f"{why}; the run did not end within {patience:g} s (timeouts.drain)"
    await engines.shut_down(why, late, TELL)
    log.info("the worker ends, as it was asked to by SIGTERM")

"""Waiting for processes that start, however slow a busy machine is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mplang_worker.front.service_manager import notify

START_TIMEOUT = 30.0  # seconds after which a process that does not start is warned of
MAX_WARNINGS = 20  # so that one that hangs does not wait for ever
T = TypeVar("T")
log = logging.getLogger("mplang.http.front")


async def wait_for_start(ready: asyncio.Future[T], what: str) -> T:
    """Wait for the first word of a process, whose end is an exception of the future.

    Args:
        ready: is done with what the process says.
        what: what starts, for the log.

    Raises:
        TimeoutError: it hangs.
    """
    for turn in range(1, MAX_WARNINGS + 1):
        try:
            return await asyncio.wait_for(asyncio.shield(ready), START_TIMEOUT)
        except TimeoutError:
            log.warning(
                "%s is not ready after %g s: is the machine busy?", what, turn * START_TIMEOUT
            )
    raise TimeoutError(f"it takes more than {MAX_WARNINGS * START_TIMEOUT:g} s")


async def wait_until_warm(ready: Callable[[float], Awaitable[None]], seconds: float) -> None:
    """Wait until engines can be forked; warn of it, and ask the service manager for more time.

    Args:
        ready: waits for it, up to seconds.
        seconds: after which it is warned of, each time.
    """
    turn = 0
    while True:
        try:
            return await ready(seconds)
        except TimeoutError:
            turn += 1
            log.warning(
                "the imports of engines are not done after %g s: is the machine busy?",
                turn * seconds,
            )
            notify(f"EXTEND_TIMEOUT_USEC={round(3 * seconds * 1e6)}")

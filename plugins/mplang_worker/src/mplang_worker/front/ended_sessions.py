"""Sessions that have ended, and why, for coordinators that ask for them later."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from mplang_core.ext import ShutdownError
from mplang_worker.base.errors import RequestError
from mplang_worker.front.session import Key

MAX_ENDED = 1000  # sessions of which it is known why they ended
_LOST = "it ended, or this worker was started again; its values are lost"


class EndedSessions:
    """Reasons why sessions ended, and coordinators that know of the shutdown."""

    def __init__(self) -> None:
        self._why: OrderedDict[Key, str] = OrderedDict()
        self._shut_down: dict[Key, asyncio.Event] = {}  # set once the coordinator has been told

    def reopen(self, key: Key) -> None:
        """Forget why a session ended, as there is a new one of that name."""
        self._why.pop(key, None)

    def add(self, key: Key, why: str) -> None:
        """Record why a session ends; whoever asks from now on comes after its end."""
        self._why[key] = why
        if len(self._why) > MAX_ENDED:
            self._why.popitem(last=False)

    def shut_down(self, key: Key) -> None:
        """Record that a session ends as the worker is being shut down."""
        self._shut_down[key] = asyncio.Event()

    def error(self, key: Key) -> RequestError | ShutdownError:
        """Return the error of a request for a session that is not open."""
        why = self._why.get(key, _LOST)
        if key in self._shut_down:
            self._shut_down[key].set()
            return ShutdownError(why)
        text = f"no session {key[1][:100]!r} of yours is open here: {why}"
        return RequestError(404, "unknown-session", text)

    async def wait_until_told(self, patience: float) -> None:
        """Wait until the coordinators have been told that the worker is being shut down.

        Args:
            patience: seconds to wait.
        """
        told = [asyncio.ensure_future(each.wait()) for each in self._shut_down.values()]
        if told:
            await asyncio.wait(told, timeout=patience)

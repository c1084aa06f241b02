"""Retention of a worker: what has expired by its owner's rules is deleted, on record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from mplang_worker.base.retention_protocols import Retaining
from mplang_worker.base.section_protocols import Gate
from mplang_worker.base.sections import GATE, SINK
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.storage import FrontStorage
from mplang_worker.front.threads import in_thread

INTERVAL = 3600.0  # seconds between two sweeps
EXPIRED = "expired"
log = logging.getLogger("mplang.http.front")


class RetentionSweep:
    """Sweep over the sections of a worker.

    Args:
        providers: what the sections have made, by their names; those that are :class:`Retaining`
            are swept.
        gate: the gate that has expiries on record; without one they are in the worker's own log.
        clock: returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        providers: Mapping[str, object],
        gate: Gate | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._retaining = {name: p for name, p in providers.items() if isinstance(p, Retaining)}
        self._gate, self._clock = gate, clock

    @classmethod
    def of(cls, storage: FrontStorage, gate: FrontGate) -> RetentionSweep:
        """Return the sweep over a worker's own sections."""
        return cls({SINK: storage.provider, GATE: gate.provider}, gate.provider)

    async def watch(self) -> None:
        """Sweep again and again; for good."""
        while self._retaining:
            await in_thread(self.sweep)
            await asyncio.sleep(INTERVAL)

    def sweep(self) -> None:
        """Delete what has expired; what fails is in the log, and is tried again with the next."""
        for name, provider in self._retaining.items():
            try:
                provider.expire(self._clock(), self._note)
            except Exception as error:  # also of code that is not ours
                log.error("what has expired of section %s is not all deleted: %s", name, error)

    def _note(self, about: Mapping[str, object]) -> None:
        if self._gate is not None:
            self._gate.note(EXPIRED, about)
        what = (about.get(each) for each in ("count", "what", "rule"))
        log.info("%s %s expire by the rule %s", *what)

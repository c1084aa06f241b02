"""Readiness of a worker: whether what its sections need is there, such as sources and disks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from mplang_worker.base.section_protocols import Probed
from mplang_worker.base.sections import DATA, GATE, SINK
from mplang_worker.front.data_sets import FrontDataSets
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.storage import FrontStorage
from mplang_worker.front.threads import in_thread

INTERVAL = 30.0  # seconds between two probes
INTERVAL_MISSING = 5.0  # seconds, while something is missing
log = logging.getLogger("mplang.http.front")


class Readiness:
    """Probes of what a worker needs to run programs, beside its processes.

    Args:
        providers: return what its sections have made, by their names, which a reload may change;
            those that are :class:`Probed` are asked.
    """

    def __init__(self, providers: Mapping[str, Callable[[], object]]) -> None:
        self._providers = providers
        self._missing: dict[str, dict[str, str]] = {}
        self._now = asyncio.Event()

    @classmethod
    def of(cls, data: FrontDataSets, storage: FrontStorage, gate: FrontGate) -> Readiness:
        """Return the readiness of a worker by its sections."""
        return cls({
            DATA: lambda: data.provider, SINK: lambda: storage.provider, GATE: lambda: gate.provider
        })  # fmt: skip

    @property
    def missing(self) -> list[str]:
        """Names of the sections that lack something. What they lack is in the worker's own log."""
        return sorted(name for name, lacks in self._missing.items() if lacks)

    def probe_soon(self) -> None:
        """Probe again now, as something has failed."""
        self._now.set()

    async def watch(self) -> None:
        """Probe again and again; for good."""
        while True:
            self._now.clear()
            for name, provider_now in self._providers.items():
                provider = provider_now()
                is_probed = isinstance(provider, Probed)
                lacks = await in_thread(_probe, name, provider) if is_probed else {}
                self._note(name, lacks)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_MISSING if self.missing else INTERVAL):
                    await self._now.wait()

    def _note(self, name: str, lacks: dict[str, str]) -> None:
        before, self._missing[name] = self._missing.get(name, {}), lacks
        for what, why in lacks.items():
            if what not in before:
                log.error("not ready: %s: %s", what, why)
        for what in before.keys() - lacks.keys():
            log.warning("%s is there again", what)


def _probe(name: str, provider: Probed) -> dict[str, str]:
    try:
        return dict(provider.missing())
    except Exception as error:  # of code that is not ours
        return {f"section {name}": f"it cannot be probed: {type(error).__name__}"}

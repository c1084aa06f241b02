"""Notices among fronts that what a run has stored is withdrawn, though no session of it is open.

Each party remembers what its own values rest on, and cannot know that another one has revoked an
approval, or stopped a run: it is told, and tells those who have stored what was made of it there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.base.lineage_protocols import RunLineage
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.stop_notices import StopNotices
from mplang_worker.front.threads import in_thread

INTERVAL = 0.5  # seconds between two looks at what was withdrawn
STORED = "/v1/stored"
Notice: TypeAlias = tuple[str, str, str]
"""Coordinator and name of a run that is withdrawn, and the peer that is to know it."""

log = logging.getLogger("mplang.http.front")


class Notifying(Protocol):
    """Sessions of a worker, as notices need them."""

    gate: FrontGate
    notices: StopNotices

    def begin(self, work: Coroutine[object, object, None]) -> object:
        """Start work that goes on."""


class Withdrawals:
    """Sender of a worker's notices to the peers that have stored what is withdrawn here.

    Args:
        config: configuration of the worker, whose peers may change.
        engines: its sessions.
    """

    def __init__(self, config: WorkerConfig, engines: Notifying) -> None:
        self._config, self._engines = config, engines
        self._busy: set[str] = set()  # peers that are being notified

    async def watch(self) -> None:
        """Notify peers of what is withdrawn, by other processes, too; for good."""
        gate = self._engines.gate.provider
        while gate is not None:
            await asyncio.sleep(INTERVAL)
            try:
                notices = await in_thread(gate.lineage.notices)
            except AdmissionError:  # which is logged, and nothing begins meanwhile
                continue
            by_peer: dict[str, list[Notice]] = {}
            for each in notices:
                by_peer.setdefault(each[2], []).append(each)
            for peer in by_peer.keys() & (self._config.peers or {}).keys() - self._busy:
                self._busy.add(peer)
                self._engines.begin(self._notify(gate.lineage, peer, by_peer[peer]))

    async def _notify(self, lineage: RunLineage, peer: str, notices: Sequence[Notice]) -> None:
        try:
            for each in notices:
                coordinator, run, _ = each
                path = f"{STORED}/{run}?{urlencode({'coordinator': coordinator})}"
                if not await self._engines.notices.deliver(peer, path, self._address):
                    return  # it is tried again
                await in_thread(lineage.notified, each)
        except AdmissionError as error:
            log.error("%s was notified, and that is not logged: %s", peer, error)
        finally:
            self._busy.discard(peer)

    def _address(self, peer: str) -> str:
        return (self._config.peers or {})[peer]


async def take_withdrawal(
    engines: Notifying, coordinator: str, run: str, sender: str | None
) -> None:
    """Withdraw what a run has stored here, as another party of it says.

    Args:
        engines: the sessions of the worker.
        coordinator: whose run it is.
        run: its name.
        sender: common name of the certificate of who asks; ``None`` without TLS.

    Raises:
        RequestError: it takes part in no such run, of which it then learns nothing.
        AdmissionError: it cannot be recorded.
    """
    gate, by = engines.gate.provider, f"party {sender or 'of it'}"
    about = {"why": f"{by} has stopped it, or revoked what it rests on", "by": by}
    is_known = gate is not None and await in_thread(
        gate.lineage.withdraw, coordinator, run, sender, about
    )
    if not is_known:
        raise RequestError(404, "unknown-run", f"no run {run!r} of yours has stored anything here")
    if sender is not None:
        engines.notices.contact([sender])

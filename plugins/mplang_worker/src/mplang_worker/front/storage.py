"""Storage of a worker, as the front holds it: engines have no folder, and ask for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.digests import sha256
from mplang_worker.base.section_protocols import Store
from mplang_worker.base.sections import NO_STORE, SINK
from mplang_worker.front.jobs import KnownJob
from mplang_worker.front.sections import Answer, asker_of, provider_of
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread
from mplang_worker.wire.opening import Opening


class Hidden(NamedTuple):
    """Changes of storage by a session, hidden until the end of its run is published.

    Attributes:
        job: the run.
        coordinator: its coordinator.
        link: name of the session's end of the links.
        before: what was told of each name before.
    """

    job: KnownJob
    coordinator: str
    link: str
    before: Mapping[str, Any]


class FrontStorage:
    """The sink of a worker, for the engines of coordinators: each has its own values.

    Args:
        config: configuration of the worker.

    Raises:
        ConfigError: the folder cannot be written or is in use, or the key cannot be read.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._is_observable = config.is_observable
        self._store = provider_of(config, SINK, Store)
        self._hidden: list[Hidden] = []

    @property
    def provider(self) -> object:
        """What the section has made; ``None`` without it."""
        return self._store

    def start(self) -> None:
        """Copy pending rows to the owner's databases, in a thread."""
        if self._store is not None:
            threading.Thread(target=self._store.start, daemon=True).start()

    async def told(self, coordinator: str) -> dict[str, Any]:
        """Return the entries of what a coordinator has stored, by name, as it may know them."""
        if self._store is None:
            return {}
        found: dict[str, Any] = dict(await in_thread(self._store.entries, coordinator))
        if not self._is_observable:  # the time tells when an op ended
            found = {n: {k: e[k] for k in e if k != "time"} for n, e in found.items()}
        for each in self._hidden_of(coordinator):
            found |= each.before
        return {name: entry for name, entry in found.items() if entry is not None}

    async def hide(self, session: FrontSession, job: KnownJob, names: Sequence[str]) -> None:
        """Hide what a run stores and removes until its end is told, as that may be later.

        Args:
            session: its session.
            job: the run.
            names: the names of what it stores and removes; nobody else uses them meanwhile.
        """
        if names:
            told = await self.told(session.key[0])
            before = {name: told.get(name) for name in names}
            self._hidden.append(Hidden(job, session.key[0], session.link, before))

    def _hidden_of(self, coordinator: str) -> list[Hidden]:
        self._hidden = [each for each in self._hidden if not each.job.settled]
        return [each for each in self._hidden if each.coordinator == coordinator]

    def _is_hidden(self, session: FrontSession, name: str) -> bool:
        """Return whether another session changes what is stored under a name, and hides it."""
        others = (e for e in self._hidden_of(session.key[0]) if e.link != session.link)
        return any(name in each.before for each in others)

    async def check_told(self, session: FrontSession, opening: Opening) -> None:
        """Check what an engine tells its peers of what is stored here.

        Args:
            session: its session.
            opening: what it tells.

        Raises:
            AdmissionError: something else is stored.
            WireError: it is malformed.
        """
        from_engine = opening.read_stored()
        if not from_engine:
            return
        for name, told in from_engine.items():
            held = None
            if self._store is not None:
                held = await in_thread(self._store.versions, asker_of(session), name)
            if sha256([held]) != sha256([told]):
                raise AdmissionError(
                    f"what is stored as {name!r} has just changed; run it again", code="A006"
                )

    def release(self, session: FrontSession) -> None:
        """Release the storage locks of a session that has ended."""
        if self._store is not None:
            self._store.release(session.link)

    async def answer(
        self, session: FrontSession, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Answer an engine.

        Args:
            session: its session.
            method: what it asks for; untrusted, as what follows.
            args: plain data.
            files: memory files, which are sealed and no larger than a value may be.
        """
        if self._store is None:
            return Answer({"refused": NO_STORE})
        if method != "done" and self._is_hidden(session, str(args.get("name", ""))):
            return Answer({"refused": "a run of another session is about to change it"})
        return Answer(*await in_thread(self._store.answer, asker_of(session), method, args, files))

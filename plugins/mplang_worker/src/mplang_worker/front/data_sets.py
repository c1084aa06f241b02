"""Data sets of a worker, in the front: checked at the start, opened for engines.

Engines have no path and no password. One asks for a data set by its name, and is given open files
if its coordinator is among the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mplang_analysis import DataQuestion

from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.section_protocols import DataProvider
from mplang_worker.base.sections import DATA
from mplang_worker.front.section_reload import prepare_section
from mplang_worker.front.sections import Answer, asker_of, provider_of
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread


class FrontDataSets:
    """Data sets of a worker, for the engines of coordinators that may read them.

    Args:
        config: configuration of the worker.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._provider = provider_of(config, DATA, DataProvider)

    @property
    def provider(self) -> object:
        """What the section has made; ``None`` without it."""
        return self._provider

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes the data sets of a changed configuration count; see `LiveConfig`."""
        if self._provider is not None and after.section(DATA) is not None:
            return prepare_section(self._provider, DATA, self._config, after)
        made = provider_of(after, DATA, DataProvider)
        if made is not None:
            made.check()

        def commit() -> None:
            self._provider = made

        return commit

    def descriptions(self, coordinator: str) -> Mapping[str, Any]:
        """Return descriptions of the data sets that a coordinator may read, by name."""
        return {} if self._provider is None else self._provider.descriptions(coordinator)

    def question(self, method: str, args: Mapping[str, Any]) -> DataQuestion | None:
        """Return what an engine asks, as analyses tell it of programs; ``None`` of no data sets.

        Args:
            method: what it asks for; untrusted, as what follows.
            args: plain data.
        """
        return None if self._provider is None else self._provider.question(method, args)

    async def answer(self, session: FrontSession, method: str, args: Mapping[str, Any]) -> Answer:
        """Return what an engine is told of a data set, and its open files.

        Args:
            session: its session.
            method: what it asks for; untrusted, as what follows.
            args: plain data.
        """
        if self._provider is None:
            return Answer({"unknown": True})
        asker = asker_of(session)
        return Answer(*await in_thread(self._provider.answer, asker, method, args, ()))

    def release(self, session: FrontSession) -> None:
        """End what reads data sets for a session, as it has ended."""
        if self._provider is not None:
            self._provider.release(session.link)


def check_data(config: WorkerConfig) -> None:
    """Compare the data sets of a worker with their sources, in confined processes.

    Raises:
        ConfigError: a source is not there, or does not hold what the configuration says.
    """
    provider = provider_of(config, DATA, DataProvider)
    if provider is not None:
        provider.check()

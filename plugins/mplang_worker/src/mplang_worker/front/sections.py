"""Providers of the sections of a worker's configuration, in its front."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from mplang_core.ext import ConfigError
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.section_protocols import Asker, Provider
from mplang_worker.base.sections import section_of
from mplang_worker.front.section_reload import prepare_section
from mplang_worker.front.session import FrontSession
from mplang_worker.front.threads import in_thread
from mplang_worker.wire import ipc

T = TypeVar("T")
log = logging.getLogger("mplang.http.front")


class Answer(NamedTuple):
    """Answer to an engine.

    Attributes:
        fields: plain data.
        files: descriptors of open files.
        afterwards: what is to be called in a thread once it was sent.
    """

    fields: dict[str, Any]
    files: Sequence[int] = ()
    afterwards: Callable[[], None] | None = None


def provider_of(config: WorkerConfig, name: str, kind: type[T]) -> T | None:
    """Return what the package of a section makes in the front; ``None`` without that section.

    Args:
        config: configuration of the worker.
        name: name of the section.
        kind: protocol of what it makes.

    Raises:
        ConfigError: the worker cannot start with it, or it is of another kind.
    """
    fields = config.section(name)
    if fields is None:
        return None
    made = section_of(name).front(fields, config.model_dump(mode="json"))
    if not isinstance(made, kind):
        raise ConfigError(
            f"field {name!r}: its package makes a {type(made).__name__}, which is not an "
            f"mplang_worker.ext.{kind.__name__}",
            code="C003",
        )
    return made


def asker_of(session: FrontSession) -> Asker:
    """Return what a provider knows of a session whose engine asks."""
    return Asker(session.key[0], session.link, session.parties, session.request.rank)


class OtherSections:
    """Sections of packages other than mplang's own, for the engines of coordinators.

    Args:
        config: configuration of the worker.

    Raises:
        ConfigError: the worker cannot start with one.
    """

    def __init__(self, config: WorkerConfig) -> None:
        made = {name: provider_of(config, name, Provider) for name in config.sections}
        self._providers = {name: each for name, each in made.items() if each is not None}
        self._config = config

    def prepare(self, after: WorkerConfig) -> Callable[[], None]:
        """Return what makes the sections of a changed configuration count; see `LiveConfig`."""
        names = sorted({*self._config.sections, *after.sections})
        made = [
            prepare_section(self._providers.get(name), name, self._config, after) for name in names
        ]

        def commit() -> None:
            for each in made:
                each()

        return commit

    async def answer(
        self,
        session: FrontSession,
        section: str,
        method: str,
        args: Mapping[str, Any],
        files: Sequence[int],
    ) -> Answer:
        """Answer an engine.

        Args:
            session: its session.
            section: the section that it asks about.
            method: what it asks for; untrusted, as all that follows.
            args: plain data.
            files: sealed memory files.
        """
        provider = self._providers[section]
        answer = Answer(*await in_thread(provider.answer, asker_of(session), method, args, files))
        ipc.check_message(answer.fields)
        return answer

    def release(self, session: FrontSession) -> None:
        """Release what a session holds, as it has ended."""
        for name, each in self._providers.items():
            try:
                each.release(session.link)
            except Exception as error:  # of code that is not ours
                log.error("section %s releases nothing: %s", name, type(error).__name__)
                log.debug("why", exc_info=error)

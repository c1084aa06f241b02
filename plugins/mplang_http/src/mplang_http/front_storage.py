"""Storage of a worker, as the front holds it: engines have no folder, and ask for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mplang_core.ext import ConfigError
from mplang_http.config import WorkerConfig
from mplang_http.front_session import FrontSession
from mplang_http.threads import in_thread

if TYPE_CHECKING:
    from mplang_data.stored import Sink

log = logging.getLogger("mplang.http.front")

Answer: TypeAlias = tuple[dict[str, Any], Sequence[int]]


class FrontStorage:
    """The sink of a worker, for the engines of coordinators: each has its own values.

    Args:
        config: configuration of the worker.

    Raises:
        ConfigError: the folder cannot be written or is in use, or the key cannot be read.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._sink: Sink | None = None
        if config.sink is not None:
            from mplang_data.stored import Sink, read_sink

            self._sink = Sink(read_sink(config.sink, "/"))

    async def told(self, coordinator: str) -> dict[str, Any]:
        """Return the entries of what a coordinator has stored, by name."""
        if self._sink is None:
            return {}
        found = await in_thread(self._sink.entries, coordinator)
        return {name: each.model_dump(mode="json") for name, each in found.items()}

    def release(self, session: FrontSession) -> None:
        """Let other sessions store what this one was storing, as it has ended."""
        if self._sink is not None:
            self._sink.release(session.key[0], session.link)

    async def answer(
        self, session: FrontSession, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Answer an engine.

        Args:
            session: its session.
            method: ``held``, ``stage``, ``commit``, ``settle``, ``open`` or ``remove``.
            args: its arguments; untrusted.
            files: memory files, which are sealed and no larger than a value may be.

        Returns:
            What it is told, and open files.
        """
        from mplang_data.stored import NO_SINK, StoreError

        if self._sink is None:
            return {"refused": NO_SINK}, []
        ways: dict[str, Callable[..., Answer]] = {
            "held": self._held,
            "stage": self._stage,
            "commit": self._commit,
            "settle": self._settle,
            "open": self._open,
            "remove": self._remove,
        }
        try:
            return await in_thread(ways[method], self._sink, session, args, files)
        except StoreError as error:
            log.warning("%s of %s fails: %s", method, session.key[0], error)
            return {"refused": str(error)}, []
        except (LookupError, TypeError, ValueError, ConfigError) as error:  # no engine of ours
            log.warning("an engine asks for what there is not: %s", type(error).__name__)
            return {"refused": "what the engine asks for is malformed"}, []

    # -- in threads

    def _held(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        from mplang_data.stored.run import tell

        return {"held": tell(sink.held(session.key[0], args["name"]))}, []

    def _stage(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        from mplang_data.stored import Entry

        sink.stage(session.key[0], session.link, Entry(**args["entry"]), files)
        return {}, []

    def _commit(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.commit(session.key[0], args["name"], args["version"])
        log.info("%s stores %s, version %s", session.key[0], args["name"], args["version"][:8])
        return {}, []

    def _settle(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.settle(session.key[0], session.link, args["name"], args["version"])
        return {}, []

    def _open(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        entry, opened = sink.open(session.key[0], args["name"], args["version"])
        log.info("%s loads %s, version %s", session.key[0], args["name"], entry.version[:8])
        return {"entry": entry.model_dump(mode="json")}, opened

    def _remove(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.remove(session.key[0], session.link, args["name"])
        log.info("%s removes %s", session.key[0], args["name"])
        return {}, []

"""Storage of a worker, as the front holds it: engines have no folder, and ask for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mplang_core import MPLangError
from mplang_core.ext import AdmissionError
from mplang_http.base.config import WorkerConfig
from mplang_http.base.digests import sha256
from mplang_http.front.jobs import KnownJob
from mplang_http.front.session import FrontSession
from mplang_http.front.threads import in_thread
from mplang_http.wire.opening import Opening

if TYPE_CHECKING:
    from mplang_data.ext import OpenedFile, Sink, StoreError

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


class Hidden(NamedTuple):
    """What a session changes in storage, and nobody sees before the end of its run is told.

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
        self._untold = None if config.is_observable else {"time"}  # it tells when an op ended
        self._sink: Sink | None = None
        self._hidden: list[Hidden] = []
        if config.sink is not None:
            from mplang_data.ext import Sink, read_sink

            self._sink = Sink(read_sink(config.sink, "/"))

    def start(self) -> None:
        """Have the owner's databases take what they have not taken yet, in a thread."""
        if self._sink is not None:
            threading.Thread(target=_copy_tables, args=(self._sink,), daemon=True).start()

    async def told(self, coordinator: str) -> dict[str, Any]:
        """Return the entries of what a coordinator has stored, by name, as it may know them."""
        if self._sink is None:
            return {}
        entries = await in_thread(self._sink.entries, coordinator)
        found = {
            name: each.model_dump(mode="json", exclude=self._untold)
            for name, each in entries.items()
        }
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
        from mplang_data.ext import encode_versions

        for name, told in from_engine.items():
            held = None
            if self._sink is not None:
                held = encode_versions(
                    await in_thread(self._sink.held, session.key[0], name, session.link)
                )
            if sha256([held]) != sha256([told]):
                raise AdmissionError(f"what is stored as {name!r} has just changed; run it again")

    def release(self, session: FrontSession) -> None:
        """Let other sessions store what this one was storing, as it has ended."""
        if self._sink is not None:
            self._sink.release(session.link)

    async def answer(
        self, session: FrontSession, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Answer an engine.

        Args:
            session: its session.
            method: that of a :class:`mplang_data.stored.Storage`, or ``done``: the run has ended.
            args: its arguments; untrusted.
            files: memory files, which are sealed and no larger than a value may be.

        Returns:
            The answer.
        """
        from mplang_data.ext import NO_SINK, StoreError

        if self._sink is None:
            return Answer({"refused": NO_SINK})
        if method == "done":
            self._sink.done(session.link)
            return Answer({})
        if "name" in args and self._is_hidden(session, str(args["name"])):
            return Answer({"refused": "a run of another session is about to change it"})
        ways: dict[str, Callable[..., Answer]] = {
            "held": self._held,
            "begin": self._begin,
            "stage": self._stage,
            "commit": self._commit,
            "settle": self._settle,
            "abandon": self._abandon,
            "open": self._open,
            "remove": self._remove,
        }
        try:
            return await in_thread(ways[method], self._sink, session, args, files)
        except StoreError as error:
            log.warning("%s of %s fails: %s", method, session.key[0], _for_owner(error))
            return Answer({"refused": str(error)})
        except (LookupError, TypeError, ValueError, MPLangError) as error:  # no engine of ours
            log.warning("an engine asks for what there is not: %s", type(error).__name__)
            return Answer({"refused": "what the engine asks for is malformed"})

    # -- in threads

    def _held(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        from mplang_data.ext import encode_versions

        return Answer(
            {"held": encode_versions(sink.held(session.key[0], args["name"], session.link))}
        )

    def _begin(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.begin(session.key[0], session.link, args["name"], _named(session, args["members"]))
        return Answer({})

    def _stage(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        from mplang_data.ext import Entry, StoreError

        entry = Entry(**args["entry"])
        if list(entry.parties) != session.parties or session.request.rank not in entry.members:
            raise StoreError("an entry is of the parties of its session")
        sink.stage(session.key[0], session.link, entry, files)
        return Answer({})

    def _commit(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.commit(session.key[0], session.link, args["name"], args["version"])
        log.info("%s stores %s, version %s", session.key[0], args["name"], args["version"][:8])
        return Answer({})

    def _settle(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.settle(session.key[0], session.link, args["name"], args["version"])
        return Answer({})

    def _abandon(
        self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]
    ) -> Answer:
        told = bool(args["told"])
        sink.abandon(session.key[0], session.link, args["name"], args["version"], told=told)
        return Answer({})

    def _open(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        entry, opened = sink.open(session.key[0], args["name"], args["version"])
        log.info("%s loads %s, version %s", session.key[0], args["name"], entry.version[:8])
        given, ways = [], []
        for each in opened:
            if each.is_sealed:  # decrypted into the engine's memory, and not into the front's
                reading, writing = os.pipe()
                given.append(reading)
                ways.append((each, writing))
            else:
                given.append(each.file)
        return Answer({"entry": entry.model_dump(mode="json")}, given, partial(_unseal, ways))

    def _remove(self, sink: Sink, session: FrontSession, args: Any, files: Sequence[int]) -> Answer:
        sink.remove(session.key[0], session.link, args["name"], _named(session, args["members"]))
        log.info("%s removes %s", session.key[0], args["name"])
        return Answer({})


def _copy_tables(sink: Sink) -> None:
    for owner, name, error in sink.copy_tables():
        log.error("%s of %s: %s", name, owner, _for_owner(error))


def _for_owner(error: StoreError) -> str:
    return str(error) if error.__cause__ is None else f"{error}: {error.__cause__}"


def _named(session: FrontSession, members: Sequence[int]) -> list[str]:
    """Return the names of members, of which this party is one."""
    if session.request.rank not in members:
        raise ValueError("this party is no member")
    return [session.parties[rank] for rank in members]


def _unseal(ways: Sequence[tuple[OpenedFile, int]]) -> None:
    """Decrypt files into pipes, one after the other; close each once, as its number is reused."""
    from mplang_data.ext import StoreError

    left = list(ways)
    try:
        while left:
            each, writing = left.pop(0)
            with (
                open(each.file, "rb"),
                contextlib.suppress(StoreError, BrokenPipeError),
                open(writing, "wb") as pipe,
            ):
                each.unseal(pipe)
    finally:
        for each, writing in left:
            os.close(each.file)
            os.close(writing)

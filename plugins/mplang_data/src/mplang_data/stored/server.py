"""Sink of a worker, as its front serves it to engines: these have no folder and no key."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mplang_core import MPLangError
from mplang_data.questions import Answer, Asker
from mplang_data.stored.entry import Entry, StoreError
from mplang_data.stored.expiry import expire_stored
from mplang_data.stored.run import encode_versions
from mplang_data.stored.sink import OpenedFile, Sink

log = logging.getLogger("mplang.data")


class SinkServer:
    """Sink of a worker, for the engines of coordinators: each has its own values.

    Args:
        sink: the sink.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._methods: dict[str, Callable[[Asker, Any, Sequence[int]], Answer]] = {
            "held": self._held,
            "begin": self._begin,
            "stage": self._stage,
            "commit": self._commit,
            "settle": self._settle,
            "abandon": self._abandon,
            "open": self._open,
            "remove": self._remove,
            "done": self._done,
        }

    def start(self) -> None:
        """Copy pending rows to the owner's databases; blocks until they are there."""
        for owner, name, error in self._sink.copy_tables():
            log.error("%s of %s: %s", name, owner, _for_owner(error))

    def missing(self) -> dict[str, str]:
        """Return whether the folder has no room, for the owner."""
        why = self._sink.shortage()
        return {"sink.folder": why} if why else {}

    def expire(self, now: float, note: Callable[[Mapping[str, object]], None]) -> None:
        """Delete the values that have expired, once they are on record.

        Args:
            now: the time, in seconds since 1970.
            note: records what expires.

        Raises:
            StoreError: one cannot be deleted.
        """
        expire_stored(self._sink, now, note)

    def entries(self, coordinator: str) -> dict[str, dict[str, Any]]:
        """Return the entries of what a coordinator has stored, by name, as plain data."""
        entries = self._sink.entries(coordinator)
        return {name: each.model_dump(mode="json") for name, each in entries.items()}

    def versions(self, asker: Asker, name: str) -> list[Any]:
        """Return the versions of a value that are here; they stay until the run ends.

        Args:
            asker: the session that may load one of them.
            name: name of the value.
        """
        return encode_versions(self._sink.held(asker.coordinator, name, asker.session))

    def release(self, session: str) -> None:
        """Release the storage locks of a session that has ended."""
        self._sink.release(session)

    def answer(
        self, asker: Asker, method: str, args: Mapping[str, Any], files: Sequence[int]
    ) -> Answer:
        """Answer an engine.

        Args:
            asker: its session.
            method: that of a :class:`Storage`, or ``done``: the run has ended.
            args: its arguments; untrusted.
            files: memory files, which are sealed and no larger than a value may be.
        """
        try:
            return self._methods[method](asker, args, files)
        except StoreError as error:
            log.warning("%s of %s fails: %s", method, asker.coordinator, _for_owner(error))
            return {"refused": str(error)}, (), None
        except (LookupError, TypeError, ValueError, MPLangError) as error:  # no engine of ours
            log.warning("an engine asks for what there is not: %s", type(error).__name__)
            return {"refused": "what the engine asks for is malformed"}, (), None

    def _held(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        return _fields(held=self.versions(asker, args["name"]))

    def _begin(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        members = _named(asker, args["members"])
        self._sink.begin(asker.coordinator, asker.session, args["name"], members)
        return _fields()

    def _stage(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        entry = Entry(**args["entry"])
        if list(entry.parties) != list(asker.parties) or asker.rank not in entry.members:
            raise StoreError("an entry is of the parties of its session")
        self._sink.stage(asker.coordinator, asker.session, entry, files)
        return _fields()

    def _commit(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        self._sink.commit(asker.coordinator, asker.session, args["name"], args["version"])
        log.info("%s stores %s, version %s", asker.coordinator, args["name"], args["version"][:8])
        return _fields()

    def _settle(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        self._sink.settle(asker.coordinator, asker.session, args["name"], args["version"])
        return _fields()

    def _abandon(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        owner, by, told = asker.coordinator, asker.session, bool(args["told"])
        self._sink.abandon(owner, by, args["name"], args["version"], told=told)
        return _fields()

    def _open(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        entry, opened = self._sink.open(asker.coordinator, args["name"], args["version"])
        log.info("%s loads %s, version %s", asker.coordinator, args["name"], entry.version[:8])
        passed: list[int] = []
        pipes: list[tuple[OpenedFile, int]] = []
        for each in opened:
            if each.is_sealed:  # decrypted into the engine's memory, and not into the front's
                reading, writing = os.pipe()
                passed.append(reading)
                pipes.append((each, writing))
            else:
                passed.append(each.file)
        return {"entry": entry.model_dump(mode="json")}, passed, partial(_unseal, pipes)

    def _remove(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        members = _named(asker, args["members"])
        self._sink.remove(asker.coordinator, asker.session, args["name"], members)
        log.info("%s removes %s", asker.coordinator, args["name"])
        return _fields()

    def _done(self, asker: Asker, args: Any, files: Sequence[int]) -> Answer:
        self._sink.done(asker.session)
        return _fields()


def _fields(**fields: Any) -> Answer:
    return fields, (), None


def _for_owner(error: StoreError) -> str:
    return str(error) if error.__cause__ is None else f"{error}: {error.__cause__}"


def _named(asker: Asker, members: Sequence[int]) -> list[str]:
    """Return the names of members, of which this party is one."""
    if asker.rank not in members:
        raise ValueError("this party is not a member")
    return [asker.parties[rank] for rank in members]


def _unseal(pipes: Sequence[tuple[OpenedFile, int]]) -> None:
    """Decrypt files into pipes, one after the other; close each once, as its number is reused."""
    left = list(pipes)
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

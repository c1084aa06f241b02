"""Expiry of stored values: versions that are older than the owner's rule are deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mplang_data.stored.disk import at, remove, telling
from mplang_data.stored.entry import StoreError
from mplang_data.stored.sink import Sink, owner_of
from mplang_data.stored.versions import read_entry, versions_of

RULE = "sink.retention.stored"
MAX_LISTED = 20  # values of a record, each by its name and version


class Version(NamedTuple):
    """A version of a stored value.

    Attributes:
        folder: the folder of the value.
        version: its name.
        time: when it was stored, in seconds since 1970.
    """

    folder: Path
    version: str
    time: float

    @property
    def name(self) -> str:
        """Coordinator, name and version, for the owner."""
        return f"{owner_of(self.folder.parent)}/{self.folder.name}, version {self.version[:8]}"


def stored_in(folder: Path) -> Iterator[Version]:
    """Yield the versions of a sink; those that are damaged stay until their owner removes them.

    Args:
        folder: its folder.
    """
    for value in sorted(folder.glob("*/[A-Za-z]*")):
        for version in versions_of(value):
            with contextlib.suppress(StoreError):
                entry = read_entry(at(value, version))
                if entry.time is not None:
                    yield Version(value, version, entry.time)


def expire_stored(sink: Sink, now: float, note: Callable[[Mapping[str, object]], None]) -> None:
    """Delete the versions that have expired, each once it is on record.

    One that a run may still load, or that is being replaced, stays until the next time.

    Args:
        sink: the sink.
        now: the time, in seconds since 1970.
        note: records what expires.

    Raises:
        StoreError: a version cannot be deleted.
    """
    keeps = sink.config.retention.seconds
    if keeps is None:
        return
    everything = stored_in(Path(sink.config.folder))
    due = [each for each in everything if each.time + keeps <= now and not sink.is_used(each)]
    for begin in range(0, len(due), MAX_LISTED):
        batch = due[begin : begin + MAX_LISTED]
        about = {"what": "stored values", "rule": f"{RULE}: {sink.config.retention.stored}"}
        note({**about, "count": len(batch), "values": [each.name for each in batch]})
        for each in batch:
            _delete(sink, each)


def _delete(sink: Sink, version: Version) -> None:
    with sink.expiring(version.folder) as is_free, telling("removed"):
        if not is_free or sink.is_used(version):
            return
        if versions_of(version.folder) == [version.version]:
            remove(version.folder)
        else:
            remove(at(version.folder, version.version))

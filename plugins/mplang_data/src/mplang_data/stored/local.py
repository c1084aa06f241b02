"""Storage of parties whose sinks are in this process."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from mplang_analysis import Followed, Stored, storage_of

from mplang_core import Program
from mplang_core.ext import AdmissionError
from mplang_data.stored.entry import Entry, Held, StoreError
from mplang_data.stored.run import StoreRun, resolve
from mplang_data.stored.seal import MIN_KEY
from mplang_data.stored.sink import Sink, SinkConfig

OWNER = "local"
KEY = "key"


class SinkStorage:
    """Storage of a party for one session, in a sink; see :class:`Storage`.

    Args:
        sink: the sink.
        owner: the coordinator.
        session: the session.
    """

    def __init__(self, sink: Sink, owner: str, session: str) -> None:
        self._sink = sink
        self._owner = owner
        self._session = session
        self.run: StoreRun | None = None

    def held(self, name: str) -> Sequence[Held]:
        """Return the versions that are here, whole."""
        return self._sink.held(self._owner, name)

    def stage(self, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one."""
        self._sink.stage(self._owner, self._session, entry, files)

    def commit(self, name: str, version: str) -> None:
        """Make a version the current one."""
        self._sink.commit(self._owner, name, version)

    def settle(self, name: str, version: str) -> None:
        """Remove all other versions."""
        self._sink.settle(self._owner, self._session, name, version)

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and its open files."""
        return self._sink.open(self._owner, name, version)

    def remove(self, name: str) -> None:
        """Remove all versions."""
        self._sink.remove(self._owner, self._session, name)


class LocalStorage:
    """Storage of all parties of a simulator.

    Args:
        folder: a folder for those of the parties; a temporary one if ``None``.
        parties: names of the parties, by rank.

    Raises:
        ConfigError: the folder cannot be written, or is in use.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, parties: Sequence[str]) -> None:
        self._parties = list(parties)
        self._session = secrets.token_hex(8)
        made = tempfile.mkdtemp(prefix="mplang-") if folder is None else os.fspath(folder)
        self._sinks: list[Sink] = []
        self._end = weakref.finalize(self, _close, self._sinks, made if folder is None else None)
        root = Path(made)
        key = root / KEY
        root.mkdir(parents=True, exist_ok=True)
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(MIN_KEY))
        for rank, name in enumerate(self._parties):
            where = root / (name or f"party{rank}")
            self._sinks.append(Sink(SinkConfig(folder=str(where), key_file=str(key))))
        self.parties = [SinkStorage(sink, OWNER, self._session) for sink in self._sinks]

    def begin(self, program: Program, run: str) -> Stored:
        """Prepare a run, and return the labels of what it loads.

        Raises:
            AdmissionError: what it loads is not there, or not of one run at all members.
        """
        loads = [use for use in storage_of(program) if use.action == "load"]
        try:
            held = {
                rank: {use.name: self.parties[rank].held(use.name) for use in loads}
                for rank in {rank for use in loads for rank in use.parties}
            }
            versions, labels = resolve(loads, self._parties, held)
        except StoreError as error:
            raise AdmissionError(str(error)) from error
        made = StoreRun(run, program.digest, self._parties, versions)
        for each in self.parties:
            each.run = made
        return labels

    def follow(self, followed: Followed) -> None:
        """Note the labels of what the run stores."""
        for each in self.parties:
            assert each.run is not None
            each.run = each.run.storing(followed.stores)

    def told(self) -> Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]]:
        """Return what is stored, by party and by name: its nest and its types."""
        return {
            party: {name: (each.nest, each.kinds) for name, each in sink.entries(OWNER).items()}
            for party, sink in zip(self._parties, self._sinks, strict=True)
        }

    def close(self) -> None:
        """Close the sinks, and remove a temporary folder."""
        self._end()


def _close(sinks: list[Sink], folder: str | None) -> None:
    for sink in sinks:
        sink.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)

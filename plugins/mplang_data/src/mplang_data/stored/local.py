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
from mplang_data.sources.source import close_all
from mplang_data.stored.entry import Entry, Held, StoreError
from mplang_data.stored.run import StoreRun, resolve_loads
from mplang_data.stored.seal import MIN_KEY
from mplang_data.stored.sink import OpenedFile, Sink
from mplang_data.stored.sink_config import SinkConfig

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

    def begin(self, name: str, members: Sequence[int]) -> None:
        """Begin to store."""
        self._sink.begin(self._owner, self._session, name, self._named(members))

    def stage(self, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one."""
        self._sink.stage(self._owner, self._session, entry, files)

    def commit(self, name: str, version: str) -> None:
        """Make a version the current one."""
        self._sink.commit(self._owner, self._session, name, version)

    def settle(self, name: str, version: str) -> None:
        """Remove all other versions."""
        self._sink.settle(self._owner, self._session, name, version)

    def abandon(self, name: str, version: str, *, told: bool) -> None:
        """Release the lock of a name."""
        self._sink.abandon(self._owner, self._session, name, version, told=told)

    def open(self, name: str, version: str) -> tuple[Entry, Sequence[int]]:
        """Return a version and its open files."""
        entry, files = self._sink.open(self._owner, name, version)
        opened: list[int] = []
        try:
            for each in files:
                opened.append(_decrypted(each) if each.is_sealed else os.dup(each.file))
        except BaseException:
            close_all(opened)
            raise
        finally:
            close_all([each.file for each in files])
        return entry, opened

    def remove(self, name: str, members: Sequence[int]) -> None:
        """Remove all versions."""
        self._sink.remove(self._owner, self._session, name, self._named(members))

    def _named(self, members: Sequence[int]) -> list[str]:
        assert self.run is not None
        return [self.run.parties[rank] for rank in members]


def _decrypted(sealed: OpenedFile) -> int:
    file = os.memfd_create("mplang", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(file), "wb") as out:
            sealed.unseal(out)
    except BaseException:
        os.close(file)
        raise
    os.lseek(file, 0, os.SEEK_SET)
    return file


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
            versions, labels = resolve_loads(loads, self._parties, held)
        except StoreError as error:
            raise AdmissionError(str(error), code="A006") from error
        made = StoreRun(run, program.digest, self._parties, versions)
        for each in self.parties:
            each.run = made
        return labels

    def follow(self, followed: Followed) -> None:
        """Record the labels of what the run stores."""
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

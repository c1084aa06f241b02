"""Sink of a party: a folder where the values that programs store for it lie.

Under the name of a coordinator and that of a value there is a folder for each version, and
``current``, a symbolic link to the one that was stored last, as in
``analyst/scores/current/value.parquet``. A version is written whole beside the current one, and
becomes it by the replacement of the link, so that who is killed leaves what was before or what is
new.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, unquote

from mplang_core.ext import ConfigError
from mplang_data.description import check_name
from mplang_data.stored.disk import (
    BLOCK,
    FixedReader,
    at,
    discard,
    flush,
    make,
    new,
    remove,
    sha256_of,
    shortage,
    size_of,
    sync,
    telling,
)
from mplang_data.stored.entry import Entry, Held, StoreError, is_sealed
from mplang_data.stored.seal import seal, unseal
from mplang_data.stored.sink_config import SinkConfig
from mplang_data.stored.tables import Tables
from mplang_data.stored.versions import (
    CURRENT,
    ENTRY,
    check_here,
    current_entry,
    current_of,
    read_entry,
    sums_of,
    versions_of,
)

MAX_VERSIONS = 32  # of one value, which interrupted runs may leave
MAX_NAMES = 1000  # of one coordinator
MAX_ENDED = 10_000  # sessions that have ended, and may have a question on its way
MAX_FOLDER = 200  # characters of the name of a folder


class Sink:
    """Sink of a party, which one process has open. Safe for threads.

    Args:
        config: where it is.

    Raises:
        ConfigError: the folder cannot be written, or is in use; or the key cannot be read.
    """

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._key = config.key()
        self._tables = Tables(config.tables)
        self._folder = Path(config.folder)
        self._storing: dict[tuple[str, str], str] = {}  # which session stores it now
        self._used: dict[str, set[str]] = {}  # versions that a session may still load
        self._ended: OrderedDict[str, None] = OrderedDict()  # sessions
        self._expiring: set[Path] = set()  # folders of values
        self._coming = Counter[str]()  # bytes that are being written, by owner
        self._lock = threading.Lock()  # over these; never held while files are read or written
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock_file = os.open(
                self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise ConfigError(f"field 'sink.folder': {error.strerror}", code="C003") from None
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock_file)
            raise ConfigError(
                f"field 'sink.folder': another process stores in {self._folder}", code="C003"
            ) from None
        for leftover in (*self._folder.glob("**/.gone-*"), *self._folder.glob("**/.new-*")):
            discard(leftover)  # of a process that was killed

    def close(self) -> None:
        """Release the folder for another process."""
        os.close(self._lock_file)

    # -- what is there

    def shortage(self) -> str:
        """Return why nothing can be stored now; empty if there is room."""
        return shortage(self._folder)

    def held(self, owner: str, name: str, by: str | None = None) -> list[Held]:
        """Return the versions of a value that are here, whole.

        Args:
            owner: the coordinator whose value it is.
            name: its name.
            by: a session that may load one of them: they stay until it lets go of them.
        """
        folder = self._of(owner, name)
        if by is not None:
            with self._lock:
                if by not in self._ended:
                    used = self._used.setdefault(by, set())
                    used |= {at(folder, each) for each in versions_of(folder)}
        current, found = current_of(folder), []
        for each in versions_of(folder):
            with contextlib.suppress(StoreError):  # one that goes meanwhile, or is damaged
                found.append(Held(read_entry(at(folder, each)).card(), each == current))
        return found

    def entries(self, owner: str) -> dict[str, Entry]:
        """Return the current entries of a coordinator, by name; without those that are damaged."""
        found = {}
        for folder in sorted(self._owned(owner).glob("[A-Za-z]*")):
            with contextlib.suppress(StoreError):
                entry = current_entry(folder)
                if entry is not None:
                    found[folder.name] = entry
        return found

    # -- storing: staged by all members, then current at all, then the only one

    def begin(self, owner: str, by: str, name: str, members: Sequence[str]) -> None:
        """Begin to store a value: no other session can until it is settled or abandoned.

        Args:
            owner: the coordinator whose value it is.
            by: the session that stores it.
            name: its name.
            members: names of the parties that store it together.

        Raises:
            StoreError: another session stores it now, or it was stored by others together.
        """
        self._take(owner, by, name)
        try:
            self._check_members(self._of(owner, name), name, members)
        except BaseException:
            self._let_go(owner, by, name)
            raise

    def stage(self, owner: str, by: str, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one.

        Args:
            owner: the coordinator whose value it is.
            by: the session that has begun to store it.
            entry: what is kept beside it; what was current, and the time, are set here.
            files: descriptors of its files, in order, which do not change.

        Raises:
            StoreError: it cannot be written, or the session has not begun.
        """
        self._check_taken(owner, by, entry.name)
        names, folder = entry.files(), self._of(owner, entry.name)
        if len(files) != len(names):
            raise StoreError(f"{len(names)} values of {entry.name!r}, and {len(files)} files")
        sealed = [is_sealed(kind) for kind in entry.types]
        if any(sealed) and self._key is None:
            raise StoreError(
                "shares and keys are stored encrypted, and this party's sink has no key; its owner "
                "gives it one, as key_file or key_command"
            )
        size = sum(os.fstat(file).st_size for file in files) + len(entry.model_dump_json())
        with telling("written"), self._room(owner, entry.name, size):
            for leftover in (*folder.glob(".new-*"), *folder.glob(".gone-*")):
                discard(leftover)
            here = current_of(folder)
            previous = here if here in versions_of(folder) else None
            entry = entry.model_copy(update={"previous": previous, "time": time.time()})
            self._write(owner, entry, list(zip(names, files, sealed, strict=True)))

    def _write(self, owner: str, entry: Entry, files: Sequence[tuple[str, int, bool]]) -> None:
        folder = self._of(owner, entry.name)
        make(folder)
        written = new(folder)
        os.mkdir(written)
        try:
            self._fill(written, owner, entry, files)
            os.rename(written, at(folder, entry.version))
        except BaseException:
            discard(written)
            raise
        sync(folder)

    def _fill(
        self, folder: str, owner: str, entry: Entry, files: Sequence[tuple[str, int, bool]]
    ) -> None:
        sums = {}
        for name, given, is_secret in files:
            source = FixedReader(given)
            with open(at(folder, name), "x+b") as file:
                if is_secret:
                    assert self._key is not None
                    seal(self._key, _about(owner, entry, name), source, file)
                else:
                    shutil.copyfileobj(source, file, BLOCK)
                flush(file)
                sums[name] = sha256_of(file.fileno())
        with open(at(folder, ENTRY), "xb") as file:
            file.write(json.dumps({"entry": entry.model_dump(mode="json"), "files": sums}).encode())
            flush(file)
        sync(folder)

    def commit(self, owner: str, by: str, name: str, version: str) -> None:
        """Make a version that is here the current one.

        Raises:
            StoreError: it is not here, or the session does not store it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        with telling("replaced"):
            check_here(folder, name, version)
            link = new(folder)
            os.symlink(version, link)
            os.replace(link, folder / CURRENT)
            sync(folder)

    def settle(self, owner: str, by: str, name: str, version: str) -> None:
        """Remove all other versions, as all members have made this one their current one.

        Those that a run of another session may still load stay until the next time. A table of a
        database takes the rows, if the configuration names one.

        Raises:
            StoreError: the session does not store it, or the database does not take it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        try:
            with telling("tidied"):
                if current_of(folder) != version:
                    return
                with self._lock:
                    used = set().union(*self._used.values())
                for each in versions_of(folder):
                    if each != version and at(folder, each) not in used:
                        remove(at(folder, each))
            self._tables.copy(owner, name, folder)
        finally:
            self._let_go(owner, by, name)

    def copy_tables(self) -> Iterator[tuple[str, str, StoreError]]:
        """Copy pending rows to the databases; yield each failure: owner, name, why."""
        for owner, name in self._tables:
            try:
                self._tables.copy(owner, name, self._of(owner, name))
            except StoreError as error:
                yield owner, name, error

    def abandon(self, owner: str, by: str, name: str, version: str, *, told: bool) -> None:
        """Release the lock of a name; its version stays if another member may have committed it.

        Raises:
            StoreError: the session does not store it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        try:
            with telling("withdrawn"):
                if not told and version in versions_of(folder) and current_of(folder) != version:
                    remove(at(folder, version))
        finally:
            self._let_go(owner, by, name)

    def done(self, by: str) -> None:
        """Release the versions that a run reserved for loading: it has ended."""
        with self._lock:
            self._used.pop(by, None)

    def release(self, by: str) -> None:
        """Release the locks of a session that has ended."""
        with self._lock:
            self._used.pop(by, None)
            self._ended[by] = None
            while len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)
            for key in [key for key, taken in self._storing.items() if taken == by]:
                del self._storing[key]

    # -- loading and removing

    def open(self, owner: str, name: str, version: str) -> tuple[Entry, list[OpenedFile]]:
        """Return a version, and its files.

        Raises:
            StoreError: it is not here, or damaged.
        """
        folder = self._of(owner, name)
        check_here(folder, name, version)  # it may be any text, such as a path
        here = at(folder, version)
        entry, sums, files = read_entry(here), sums_of(here), list[OpenedFile]()
        if self._key is None and any(map(is_sealed, entry.types)):
            raise StoreError("the stored value is encrypted, and this party's sink has no key")
        try:
            with telling("read"):
                for file, kind in zip(entry.files(), entry.types, strict=True):
                    opened = os.open(at(here, file), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                    about = _about(owner, entry, file) if is_sealed(kind) else None
                    files.append(OpenedFile(opened, about, self._key))
                    if sha256_of(opened) != sums.get(file):
                        raise StoreError(f"{file} of {name!r} was changed since it was stored")
        except BaseException:
            for each in files:
                os.close(each.file)
            raise
        return entry, files

    def remove(self, owner: str, by: str, name: str, members: Sequence[str]) -> None:
        """Remove all versions of a value; do nothing if there are none.

        Args:
            owner: the coordinator whose value it is.
            by: the session that removes it.
            name: its name.
            members: names of the parties that remove it together.

        Raises:
            StoreError: another session stores it now, or it was stored by others together.
        """
        self.begin(owner, by, name, members)
        try:
            folder = self._of(owner, name)
            with telling("removed"):
                if folder.is_dir():
                    remove(folder)
        finally:
            self._let_go(owner, by, name)

    # -- who stores what

    def _take(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if by in self._ended:
                raise StoreError("the session has ended")
            is_going = self._of(owner, name) in self._expiring
            if is_going or self._storing.setdefault((owner, name), by) != by:
                raise StoreError(f"another session stores {name!r} now; try again")

    def _check_taken(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if self._storing.get((owner, name)) != by:
                raise StoreError(f"this session does not store {name!r} now")

    def _let_go(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if self._storing.get((owner, name)) == by:
                del self._storing[owner, name]

    # -- expiry

    @property
    def config(self) -> SinkConfig:
        """Its configuration."""
        return self._config

    def is_used(self, version: tuple[Path, str, float]) -> bool:
        """Return whether a session may still load a version."""
        with self._lock:
            return any(at(version[0], version[1]) in used for used in self._used.values())

    @contextlib.contextmanager
    def expiring(self, folder: Path) -> Iterator[bool]:
        """Lock a name inside of ``with``; yield false if it is locked already."""
        with self._lock:
            is_free = all(self._of(*key) != folder for key in self._storing)
            if is_free:
                self._expiring.add(folder)
        try:
            yield is_free
        finally:
            with self._lock:
                self._expiring.discard(folder)

    def _check_members(self, folder: Path, name: str, members: Sequence[str]) -> None:
        """Check that a name is not that of something that others hold, too, and would lose."""
        current = current_of(folder)
        if current is None:
            return
        try:
            entry = read_entry(at(folder, current))
        except StoreError:
            return  # damaged: whoever holds it may replace it
        were = [entry.parties[rank] for rank in entry.members]
        if sorted(were) != sorted(members):
            raise StoreError(
                f"{name!r} is stored by {', '.join(were)} together, and would be lost at the "
                "others; take another name, or remove it at all of them"
            )

    # -- the folder

    def _owned(self, owner: str) -> Path:
        # a name may be any text of a certificate: no folder, and none that is hidden
        name = quote(owner, safe="").replace(".", "%2E")
        if len(name) > MAX_FOLDER:
            name = f"{name[:100]}-{hashlib.sha256(owner.encode()).hexdigest()}"
        return self._folder / name

    def _of(self, owner: str, name: str) -> Path:
        return self._owned(owner) / check_name(name)

    @contextlib.contextmanager
    def _room(self, owner: str, name: str, size: int) -> Iterator[None]:
        """Check that there is room for a version, and keep it for this one inside of ``with``."""
        with self._lock:
            self._coming[owner] += size
            coming = self._coming[owner]
        try:
            self._check_room(owner, name, coming)
            yield
        finally:
            with self._lock:
                self._coming[owner] -= size

    def _check_room(self, owner: str, name: str, size: int) -> None:
        owned, folder = self._owned(owner), self._of(owner, name)
        if len(versions_of(folder)) >= MAX_VERSIONS:
            raise StoreError(
                f"{name!r} has {MAX_VERSIONS} versions of runs that were interrupted; remove it, "
                "or take another name"
            )
        if not folder.exists() and len(list(owned.glob("[A-Za-z]*"))) >= MAX_NAMES:
            raise StoreError(f"a coordinator stores {MAX_NAMES} values at most; remove some")
        if size_of(owned) + size > self._config.size:
            raise StoreError(
                f"a coordinator stores {self._config.size} bytes at this party at most "
                "(sink.size); remove something first"
            )


class OpenedFile(NamedTuple):
    """File of a version that is open.

    Attributes:
        file: its descriptor; whoever has this closes it.
        about: what it is, if it is encrypted.
        key: the sink's key.
    """

    file: int
    about: bytes | None
    key: bytes | None

    @property
    def is_sealed(self) -> bool:
        """Whether it is encrypted."""
        return self.about is not None

    def unseal(self, out: BinaryIO) -> None:
        """Write it decrypted.

        Raises:
            StoreError: it is damaged, or encrypted with another key.
        """
        assert self.about is not None
        assert self.key is not None
        unseal(self.key, self.about, FixedReader(self.file), out)


def owner_of(folder: Path) -> str:
    """Return the coordinator whose values a folder has."""
    return unquote(folder.name)


def _about(owner: str, entry: Entry, file: str) -> bytes:
    """Return what an encrypted file is: nothing of its entry may be exchanged."""
    fields = entry.model_dump(mode="json") | {"owner": owner, "file": file}
    return json.dumps(fields, sort_keys=True).encode()

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
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

from pydantic import Field, ValidationError, model_validator

from mplang_core.ext import ConfigError, MPLangError, StrictModel
from mplang_data.description import check_name
from mplang_data.stored.entry import Entry, Held, StoreError, is_sealed
from mplang_data.stored.seal import MIN_KEY, seal, unseal

MAX_VERSIONS = 32  # of one value, which interrupted runs may leave
MAX_NAMES = 1000  # of one coordinator
MAX_ENDED = 10_000  # sessions that have ended, and may have a question on its way
MAX_FOLDER = 200  # characters of the name of a folder
MAX_ENTRY = 64 << 20  # bytes
KEY_TIMEOUT = 60.0  # seconds
BLOCK = 1 << 20  # bytes
_VERSION = re.compile(r"[0-9a-f]{64}")
CURRENT = "current"
ENTRY = "entry.json"


class SinkConfig(StrictModel):
    """Where a worker leaves what programs store, and the key of what is encrypted.

    Attributes:
        folder: the folder; it is made if it is not there.
        key_file: file with the key, at least 32 random bytes, outside of the folder.
        key_command: command that prints the key, such as that of a key store; run once when the
            worker starts, without a shell.
        size: bytes of all that one coordinator stores.
    """

    folder: str
    key_file: str | None = None
    key_command: tuple[str, ...] | None = Field(default=None, min_length=1)
    size: int = Field(default=64 << 30, gt=0)

    @model_validator(mode="after")
    def _one_key(self) -> SinkConfig:
        if self.key_file is not None and self.key_command is not None:
            raise ValueError("the key is in key_file, or printed by key_command, not both")
        if self.key_file is not None:
            folder, file = os.path.realpath(self.folder), os.path.realpath(self.key_file)
            if os.path.commonpath([folder, file]) == folder:
                raise ValueError("key_file lies in the folder, whose thief would have both")
        return self

    def at(self, folder: str) -> SinkConfig:
        """Return it with paths that do not depend on the working directory.

        Args:
            folder: the folder of the file that names it.
        """
        base = os.path.abspath(folder)
        paths = {"folder": os.path.join(base, self.folder)}
        if self.key_file is not None:
            paths["key_file"] = os.path.join(base, self.key_file)
        return SinkConfig(**(self.model_dump() | paths))

    def key(self) -> bytes | None:
        """Return the key; ``None`` if there is none, and shares and keys cannot be stored.

        Raises:
            ConfigError: it cannot be read, or is too short.
        """
        if self.key_file is not None:
            try:
                found = Path(self.key_file).read_bytes()
            except OSError as error:
                raise ConfigError(f"field 'sink.key_file': {error.strerror}") from None
        elif self.key_command is not None:
            try:
                found = subprocess.run(
                    self.key_command, stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=KEY_TIMEOUT, check=True,
                ).stdout  # fmt: skip
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                raise ConfigError(
                    f"field 'sink.key_command': it does not print a key: {type(error).__name__}"
                ) from None
        else:
            return None
        if len(found) < MIN_KEY:
            raise ConfigError(f"field 'sink': its key has {len(found)} bytes, of {MIN_KEY} or more")
        return found


def read_sink(fields: Any, folder: str) -> SinkConfig:
    """Return the sink of a configuration.

    Args:
        fields: the fields of a :class:`SinkConfig`, or a path of its folder.
        folder: the folder that paths are relative to.

    Raises:
        ConfigError: a field is invalid.
    """
    if isinstance(fields, SinkConfig):
        return fields.at(folder)
    if isinstance(fields, str):
        fields = {"folder": fields}
    if not isinstance(fields, Mapping):
        raise ConfigError("field 'sink': expected a folder, or its fields")
    try:
        return SinkConfig(**fields).at(folder)
    except ValidationError as error:
        raise ConfigError(f"field 'sink': {SinkConfig.explain(error, dict(fields))}") from None
    except (ConfigError, TypeError, ValueError) as error:
        raise ConfigError(f"field 'sink': {error}") from None


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
        self._folder = Path(config.folder)
        self._storing: dict[tuple[str, str], str] = {}  # which session stores it now
        self._used: dict[str, set[Path]] = {}  # versions that a session may still load
        self._ended: OrderedDict[str, None] = OrderedDict()  # sessions
        self._lock = threading.Lock()  # over these; never held while files are read or written
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock_file = os.open(
                self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise ConfigError(f"field 'sink.folder': {error.strerror}") from None
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock_file)
            raise ConfigError(
                f"field 'sink.folder': another process stores in {self._folder}"
            ) from None
        for leftover in self._folder.glob("**/.gone-*"):
            _discard(leftover)

    def close(self) -> None:
        """Let another process use it."""
        os.close(self._lock_file)

    # -- what is there

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
                    used |= {folder / each for each in _versions(folder)}
        current, found = _current(folder), []
        for each in _versions(folder):
            with contextlib.suppress(StoreError):  # one that goes meanwhile, or is damaged
                found.append(Held(_read_entry(folder / each).card(), each == current))
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
        with _told("written"):
            self._check_room(owner, entry.name, sum(os.fstat(file).st_size for file in files))
            for leftover in (*folder.glob(".new-*"), *folder.glob(".gone-*")):
                _discard(leftover)
            here = _current(folder)
            previous = here if here in _versions(folder) else None
            entry = entry.model_copy(update={"previous": previous, "time": time.time()})
            self._write(owner, entry, list(zip(names, files, sealed, strict=True)))

    def _write(self, owner: str, entry: Entry, files: Sequence[tuple[str, int, bool]]) -> None:
        folder = self._of(owner, entry.name)
        _make(folder)
        new = folder / f".new-{secrets.token_hex(8)}"
        new.mkdir()
        try:
            self._fill(new, owner, entry, files)
            os.rename(new, folder / entry.version)
        except BaseException:
            _discard(new)
            raise
        _sync(folder)

    def _fill(
        self, new: Path, owner: str, entry: Entry, files: Sequence[tuple[str, int, bool]]
    ) -> None:
        sums = {}
        for name, given, is_secret in files:
            source = _Fixed(given)
            with open(new / name, "xb") as file:
                if is_secret:
                    assert self._key is not None
                    seal(self._key, _about(owner, entry, name), source, file)
                else:
                    shutil.copyfileobj(source, file, BLOCK)
                _flush(file)
            sums[name] = _sha256(new / name)
        with open(new / ENTRY, "xb") as file:
            file.write(json.dumps({"entry": entry.model_dump(mode="json"), "files": sums}).encode())
            _flush(file)
        _sync(new)

    def commit(self, owner: str, by: str, name: str, version: str) -> None:
        """Make a version that is here the current one.

        Raises:
            StoreError: it is not here, or the session does not store it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        with _told("replaced"):
            _check_here(folder, name, version)
            link = folder / f".new-{secrets.token_hex(8)}"
            os.symlink(version, link)
            os.replace(link, folder / CURRENT)
            _sync(folder)

    def settle(self, owner: str, by: str, name: str, version: str) -> None:
        """Remove all other versions, as all members have made this one their current one.

        Those that a run of another session may still load stay until the next time.

        Raises:
            StoreError: the session does not store it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        try:
            with _told("tidied"):
                if _current(folder) != version:
                    return
                with self._lock:
                    used = set().union(*self._used.values())
                for each in _versions(folder):
                    if each != version and folder / each not in used:
                        _remove(folder / each)
        finally:
            self._let_go(owner, by, name)

    def abandon(self, owner: str, by: str, name: str, version: str, *, told: bool) -> None:
        """Let others store a value; its version stays if another member may have committed it.

        Raises:
            StoreError: the session does not store it.
        """
        self._check_taken(owner, by, name)
        folder = self._of(owner, name)
        try:
            with _told("withdrawn"):
                if not told and version in _versions(folder) and _current(folder) != version:
                    _remove(folder / version)
        finally:
            self._let_go(owner, by, name)

    def done(self, by: str) -> None:
        """Let go of the versions that a session might have loaded: its run has ended."""
        with self._lock:
            self._used.pop(by, None)

    def release(self, by: str) -> None:
        """Let others store what a session was storing: it has ended, and does nothing any more."""
        with self._lock:
            self._used.pop(by, None)
            self._ended[by] = None
            while len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)
            for key in [key for key, taken in self._storing.items() if taken == by]:
                del self._storing[key]

    # -- loading and removing

    def open(self, owner: str, name: str, version: str) -> tuple[Entry, list[Opened]]:
        """Return a version, and its files.

        Raises:
            StoreError: it is not here, or damaged.
        """
        folder = self._of(owner, name)
        _check_here(folder, name, version)  # it may be any text, such as a path
        folder /= version
        entry, sums, files = _read_entry(folder), _sums(folder), list[Opened]()
        try:
            with _told("read"):
                for file, kind in zip(entry.files(), entry.types, strict=True):
                    opened = os.open(folder / file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                    about = _about(owner, entry, file) if is_sealed(kind) else None
                    files.append(Opened(opened, about, self._key))
                    if _sha256_of(opened) != sums.get(file):
                        raise StoreError(f"{file} of {name!r} was changed since it was stored")
        except BaseException:
            for each in files:
                os.close(each.file)
            raise
        if self._key is None and any(each.is_sealed for each in files):
            for each in files:
                os.close(each.file)
            raise StoreError("what is stored is encrypted, and this party's sink has no key")
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
            with _told("removed"):
                if folder.is_dir():
                    _remove(folder)
        finally:
            self._let_go(owner, by, name)

    # -- who stores what

    def _take(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if by in self._ended:
                raise StoreError("the session has ended")
            if self._storing.setdefault((owner, check_name(name)), by) != by:
                raise StoreError(f"another session stores {name!r} now; try again")

    def _check_taken(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if self._storing.get((owner, name)) != by:
                raise StoreError(f"this session does not store {name!r} now")

    def _let_go(self, owner: str, by: str, name: str) -> None:
        with self._lock:
            if self._storing.get((owner, name)) == by:
                del self._storing[owner, name]

    def _check_members(self, folder: Path, name: str, members: Sequence[str]) -> None:
        """Check that a name is not that of something that others hold, too, and would lose."""
        current = _current(folder)
        if current is None:
            return
        try:
            entry = _read_entry(folder / current)
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

    def _check_room(self, owner: str, name: str, size: int) -> None:
        owned, folder = self._owned(owner), self._of(owner, name)
        if len(_versions(folder)) >= MAX_VERSIONS:
            raise StoreError(
                f"{name!r} has {MAX_VERSIONS} versions of runs that were interrupted; remove it, "
                "or take another name"
            )
        if not folder.exists() and len(list(owned.glob("[A-Za-z]*"))) >= MAX_NAMES:
            raise StoreError(f"a coordinator stores {MAX_NAMES} values at most; remove some")
        if _size(owned) + size > self._config.size:
            raise StoreError(
                f"a coordinator stores {self._config.size} bytes at this party at most "
                "(sink.size); remove something first"
            )


class Opened(NamedTuple):
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
        unseal(self.key, self.about, _Fixed(self.file), out)


class _Fixed(io.RawIOBase):
    """File by its descriptor, as long as it is now, whoever else moves in it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._at, self._end = 0, os.fstat(file).st_size

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        left = self._end - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        parts = []
        while wanted:
            part = os.pread(self._file, wanted, self._at)
            if not part:
                break
            parts.append(part)
            self._at += len(part)
            wanted -= len(part)
        return b"".join(parts)


def _size(folder: Path) -> int:
    """Return the bytes of all files of a folder, some of which may go meanwhile."""
    size = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                size += os.stat(os.path.join(path, file), follow_symlinks=False).st_size
    return size


def _check_here(folder: Path, name: str, version: str) -> None:
    if version not in _versions(folder):
        raise StoreError(f"this version of {name!r} is not here any more")


def current_entry(folder: Path) -> Entry | None:
    """Return the current entry in the folder of a value; ``None`` if there is none.

    Raises:
        StoreError: it is damaged.
    """
    current = _current(folder)
    return _read_entry(folder / current) if current in _versions(folder) else None


def owner_of(folder: Path) -> str:
    """Return the coordinator whose values a folder has."""
    return unquote(folder.name)


def _versions(folder: Path) -> list[str]:
    """Return the versions that are here, whole."""
    try:
        return sorted(each for each in os.listdir(folder) if _VERSION.fullmatch(each))
    except OSError:
        return []


def _current(folder: Path) -> str | None:
    try:
        found = os.readlink(folder / CURRENT)
    except OSError:
        return None
    return found if _VERSION.fullmatch(found) else None


def _read(folder: Path) -> Any:
    try:
        with open(folder / ENTRY, "rb") as file:
            return json.loads(file.read(MAX_ENTRY))
    except (OSError, ValueError, RecursionError):
        raise StoreError("what is kept beside a stored value is damaged, or gone") from None


def _read_entry(folder: Path) -> Entry:
    try:
        return Entry(**_read(folder)["entry"])
    except (LookupError, TypeError, ValueError, MPLangError):
        raise StoreError("what is kept beside a stored value is damaged") from None


def _sums(folder: Path) -> Mapping[str, str]:
    found = _read(folder).get("files")
    return found if isinstance(found, dict) else {}


def _about(owner: str, entry: Entry, file: str) -> bytes:
    """Return what an encrypted file is: nothing of its entry may be exchanged."""
    fields = entry.model_dump(mode="json") | {"owner": owner, "file": file}
    return json.dumps(fields, sort_keys=True).encode()


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return _sha256_of(file.fileno())


def _sha256_of(file: int) -> str:
    source, digest = _Fixed(file), hashlib.sha256()
    while block := source.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    """Remove a folder at once: whoever is killed meanwhile leaves no half of it by its name."""
    gone = path.with_name(f".gone-{secrets.token_hex(8)}")
    os.rename(path, gone)
    _sync(path.parent)
    shutil.rmtree(gone)


def _discard(path: Path) -> None:
    """Remove what an interrupted write left."""
    with contextlib.suppress(OSError):
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def _make(folder: Path) -> None:
    """Make a folder and those above it; they are there after a failure of the machine."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell of a failure of the file system, without its paths."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"it cannot be {what}: {error.strerror}") from error

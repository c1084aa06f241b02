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
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from pydantic import Field, ValidationError, model_validator

from mplang_core.ext import ConfigError, MPLangError, StrictModel
from mplang_data.description import check_name
from mplang_data.stored.entry import Entry, Held, StoreError, is_sealed
from mplang_data.stored.seal import MIN_KEY, seal, unseal

MAX_VERSIONS = 8  # of one value, which interrupted runs may leave
MAX_NAMES = 10_000  # of one coordinator
MAX_ENTRY = 64 << 20  # bytes
KEY_TIMEOUT = 60.0  # seconds
BLOCK = 1 << 20  # bytes
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
        self._storing: dict[tuple[str, str], str] = {}  # who stores it now
        self._lock = threading.Lock()
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

    def held(self, owner: str, name: str) -> list[Held]:
        """Return the versions of a value that are here, whole.

        Args:
            owner: the coordinator whose value it is.
            name: its name.

        Raises:
            StoreError: one is damaged.
        """
        folder = self._of(owner, name)
        with self._lock:
            current = _current(folder)
            return [Held(_read_entry(folder / each), each == current) for each in _versions(folder)]

    def entries(self, owner: str) -> dict[str, Entry]:
        """Return the current entries of a coordinator, by name; without those that are damaged."""
        found = {}
        with self._lock:
            for folder in sorted(self._owned(owner).glob("[A-Za-z]*")):
                with contextlib.suppress(StoreError):
                    current = _current(folder)
                    if current is not None:
                        found[folder.name] = _read_entry(folder / current)
        return found

    # -- storing: staged by all members, then current at all, then the only one

    def stage(self, owner: str, by: str, entry: Entry, files: Sequence[int]) -> None:
        """Write a version whole, beside the current one.

        Args:
            owner: the coordinator whose value it is.
            by: the session that stores it; another one cannot meanwhile.
            entry: what is kept beside it.
            files: descriptors of its files, in order, which do not change.

        Raises:
            StoreError: it cannot be written, or another session stores it now.
        """
        names, folder = entry.files(), self._of(owner, entry.name)
        if len(files) != len(names):
            raise StoreError(f"{len(names)} values of {entry.name!r}, and {len(files)} files")
        sealed = [is_sealed(kind) for kind in entry.types]
        if any(sealed) and self._key is None:
            raise StoreError(
                "shares and keys are stored encrypted, and this party's sink has no key; its owner "
                "gives it one, as key_file or key_command"
            )
        with self._lock:
            taken = self._storing.setdefault((owner, entry.name), by)
            if taken != by:
                raise StoreError(f"another session stores {entry.name!r} now")
            self._check_room(owner, entry.name, sum(os.fstat(file).st_size for file in files))
            for leftover in (*folder.glob(".new-*"), *folder.glob(".gone-*")):
                _discard(leftover)
        try:
            with _told("written"):
                self._write(owner, entry, list(zip(names, files, sealed, strict=True)))
        except BaseException:
            self.release(owner, by)
            raise

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
            with open(new / name, "xb") as file, os.fdopen(os.dup(given), "rb") as source:
                source.seek(0)
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

    def commit(self, owner: str, name: str, version: str) -> None:
        """Make a version that is here the current one.

        Raises:
            StoreError: it is not here.
        """
        folder = self._of(owner, name)
        with self._lock, _told("replaced"):
            if version not in _versions(folder):
                raise StoreError(f"this version of {name!r} is not here any more")
            link = folder / f".new-{secrets.token_hex(8)}"
            os.symlink(version, link)
            os.replace(link, folder / CURRENT)
            _sync(folder)

    def settle(self, owner: str, by: str, name: str, version: str) -> None:
        """Remove all other versions, as all members have made this one their current one.

        Does nothing while another session stores a version, or if another one is current.
        """
        folder = self._of(owner, name)
        with self._lock, _told("tidied"):
            if self._storing.get((owner, name), by) != by:
                return
            self._storing.pop((owner, name), None)
            if _current(folder) != version:
                return
            for each in _versions(folder):
                if each != version:
                    _remove(folder / each)

    def release(self, owner: str, by: str) -> None:
        """Let others store what a session was storing: it has ended."""
        with self._lock:
            mine = [key for key, taken in self._storing.items() if key[0] == owner and taken == by]
            for key in mine:
                del self._storing[key]

    # -- loading and removing

    def open(self, owner: str, name: str, version: str) -> tuple[Entry, list[int]]:
        """Return a version, and descriptors of its files: decrypted, and open for reading.

        Raises:
            StoreError: it is not here, or damaged.
        """
        folder = self._of(owner, name)
        if version not in _versions(folder):  # it may be any text, such as a path
            raise StoreError(f"this version of {name!r} is not here any more")
        folder /= version
        entry, files = _read_entry(folder), []
        try:
            with _told("read"):
                for file, kind in zip(entry.files(), entry.types, strict=True):
                    if _sha256(folder / file) != _sums(folder).get(file):
                        raise StoreError(f"{file} of {name!r} was changed since it was stored")
                    about = _about(owner, entry, file) if is_sealed(kind) else None
                    files.append(self._open(folder / file, about))
        except BaseException:
            for each in files:
                os.close(each)
            raise
        return entry, files

    def _open(self, path: Path, about: bytes | None) -> int:
        if about is None:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        if self._key is None:
            raise StoreError("what is stored is encrypted, and this party's sink has no key")
        opened = os.memfd_create("mplang", os.MFD_CLOEXEC)
        try:
            with open(path, "rb") as sealed, os.fdopen(os.dup(opened), "wb") as plain:
                unseal(self._key, about, sealed, plain)
        except BaseException:
            os.close(opened)
            raise
        return opened

    def remove(self, owner: str, by: str, name: str) -> None:
        """Remove all versions of a value; do nothing if there are none.

        Raises:
            StoreError: another session stores it now.
        """
        folder = self._of(owner, name)
        with self._lock, _told("removed"):
            if self._storing.get((owner, name), by) != by:
                raise StoreError(f"another session stores {name!r} now")
            if folder.is_dir():
                _remove(folder)

    # -- the folder

    def _owned(self, owner: str) -> Path:
        # a name may be any text of a certificate: no folder, and none that is hidden
        return self._folder / quote(owner, safe="").replace(".", "%2E")

    def _of(self, owner: str, name: str) -> Path:
        return self._owned(owner) / check_name(name)

    def _check_room(self, owner: str, name: str, size: int) -> None:
        owned = self._owned(owner)
        if len(_versions(self._of(owner, name))) >= MAX_VERSIONS:
            raise StoreError(
                f"{name!r} has {MAX_VERSIONS} versions of runs that were interrupted; load it "
                "once, or remove it"
            )
        names = list(owned.glob("[A-Za-z]*"))
        if len(names) >= MAX_NAMES:
            raise StoreError(f"a coordinator stores {MAX_NAMES} values at most; remove some")
        used = sum(file.stat().st_size for file in owned.rglob("*") if file.is_file())
        if used + size > self._config.size:
            raise StoreError(
                f"a coordinator stores {self._config.size} bytes at this party at most "
                "(sink.size); remove something first"
            )


def _versions(folder: Path) -> list[str]:
    """Return the versions that are here, whole."""
    return sorted(each.name for each in folder.glob("[0-9a-f]*") if len(each.name) == 64)


def _current(folder: Path) -> str | None:
    try:
        return os.readlink(folder / CURRENT)
    except OSError:
        return None


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
        return hashlib.file_digest(file, "sha256").hexdigest()


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

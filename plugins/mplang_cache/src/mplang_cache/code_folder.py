"""Compiled code in a folder: authenticated, bounded, and shared by the processes of one owner.

Whoever writes into the folder could have native code run. So an entry counts only with an HMAC by
the owner's key, which is kept elsewhere, over what it is and whose: one that was made by somebody
else, for another coordinator or under another name, that was cut off or changed, is dropped.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import logging
import os
import re
import secrets
import stat
import threading
import time
from dataclasses import dataclass

from mplang_cache.compiled_code import MAX_CODE
from mplang_cache.owner_files import open_own_folder

HEAD = b"mplang compiled code 1\n"
TAG = 32  # bytes
START = len(HEAD) + TAG  # of the code, in bytes
BETWEEN = 64  # entries that are written before those of other processes are counted, too
SPARE = 10  # a tenth of the bounds is free after there was too much
STALE = 3600.0  # seconds until what a process has left half written is removed
_ENTRY = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}")
log = logging.getLogger("mplang.cache")


@dataclass(frozen=True, slots=True)
class CodeBounds:
    """Bounds of the folder; beyond them the least recently used code is evicted.

    Attributes:
        size: bytes of all entries.
        entries: how many there are.
    """

    size: int = 64 << 20
    entries: int = 4096


class CodeFolder:
    """Cache of compiled code in a folder; safe for threads, and beside other processes.

    What goes wrong with a disk is told once in the log, and code is compiled as without a cache.

    Args:
        path: of the folder, which is made if it is not there.
        key: the owner's key.
        owner: whose code it is; code of another one counts as not there.
        bounds: how much is kept. Several processes that write at once may each exceed it by 64
            entries.
        within: descriptor of the folder that the path is relative to.

    Raises:
        ConfigError: the folder is not this user's alone.
    """

    def __init__(
        self,
        path: str,
        key: bytes,
        owner: str,
        bounds: CodeBounds = CodeBounds(),
        *,
        within: int | None = None,
    ) -> None:
        self._folder = open_own_folder(path, within=within)
        self._path, self._key, self._owner, self._bounds = path, key, owner.encode(), bounds
        self._lock = threading.Lock()
        self._until_counted = 0
        self._room = 0  # bytes
        self._is_silent = False

    def get(self, key: str) -> bytes | None:
        """Return what was put, if it was put by this owner; otherwise drop it.

        Args:
            key: see :func:`mplang_cache.code_key`.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(_checked(key), flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.drop(key, "it is a symbolic link")
            else:  # such as too many open files
                self._tell(error)
            return None
        try:
            fault = _fault(os.fstat(file))
            if not fault:
                data = _read(file, START + MAX_CODE)
                tag, code = data[len(HEAD) : START], data[START:]
                if data.startswith(HEAD) and hmac.compare_digest(tag, self._tag(key, code)):
                    with contextlib.suppress(OSError):
                        os.utime(file)  # so that it is not the next to go
                    return code
                fault = "it is damaged, or was not written by its owner"
        finally:
            os.close(file)
        self.drop(key, fault)
        return None

    def put(self, key: str, code: bytes) -> None:
        """Keep a code.

        Args:
            key: see :func:`mplang_cache.code_key`.
            code: at most ``MAX_CODE`` bytes; a larger one is not kept.
        """
        if len(code) > MAX_CODE:
            return
        made = f".{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.open(made, flags, 0o600, dir_fd=self._folder)
            try:
                with open(file, "wb") as opened:
                    opened.write(HEAD + self._tag(key, code) + code)
                here = self._folder
                os.rename(made, _checked(key), src_dir_fd=here, dst_dir_fd=here)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(made, dir_fd=self._folder)
                raise
            with self._lock:
                self._until_counted -= 1
                self._room -= START + len(code)
                if self._until_counted < 0 or self._room < 0:
                    self._make_room()
        except OSError as error:
            self._tell(error)

    def drop(self, key: str, why: str) -> None:
        """Remove an entry, and say so in the log.

        Args:
            key: see :func:`mplang_cache.code_key`.
            why: for the log.
        """
        log.warning("compiled code %s… is dropped, and made anew: %s", _checked(key)[:12], why)
        try:
            os.unlink(key, dir_fd=self._folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._tell(error)

    def _tag(self, key: str, code: bytes) -> bytes:
        about = HEAD + len(self._owner).to_bytes(8, "big") + self._owner + key.encode()
        return hmac.digest(self._key, about + code, "sha256")

    def _make_room(self) -> None:
        """Count the entries, and remove those that were used longest ago if there are too many."""
        entries = []
        with os.scandir(self._folder) as files:
            for each in files:
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    about = each.stat(follow_symlinks=False)
                    if _ENTRY.fullmatch(each.name):
                        entries.append((about.st_mtime, about.st_size, each.name))
                    elif _UNFINISHED.fullmatch(each.name) and about.st_mtime < time.time() - STALE:
                        os.unlink(each.name, dir_fd=self._folder)
        size, count = sum(size for _, size, _ in entries), len(entries)
        bounds = self._bounds
        if size > bounds.size or count > bounds.entries:
            most = bounds.size - bounds.size // SPARE, bounds.entries - bounds.entries // SPARE
            for _, its_size, name in sorted(entries):
                if size <= most[0] and count <= most[1]:
                    break
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._folder)
                size, count = size - its_size, count - 1
        self._until_counted = min(BETWEEN, bounds.entries - count)
        self._room = bounds.size - size

    def _tell(self, error: OSError) -> None:
        if not self._is_silent:
            self._is_silent = True
            log.warning(
                "compiled code in %s is of no use, and made anew by each process: %s",
                self._path, error.strerror,
            )  # fmt: skip


def _read(file: int, size: int) -> bytes:
    """Return what a file has, up to a size; a disk that fails gives nothing."""
    with contextlib.suppress(OSError), open(file, "rb", closefd=False) as opened:
        return opened.read(size)
    return b""


def _checked(key: str) -> str:
    """Return a key, which becomes the name of a file.

    Raises:
        ValueError: it is none.
    """
    if not _ENTRY.fullmatch(key):
        raise ValueError(f"a key of compiled code is a SHA-256 in hexadecimal, got {key[:80]!r}")
    return key


def _fault(about: os.stat_result) -> str:
    """Return why a file cannot be an entry; empty if it can."""
    if not stat.S_ISREG(about.st_mode):
        return "it is not a file"
    if about.st_uid != os.geteuid():
        return f"it belongs to the user {about.st_uid}"
    if about.st_mode & 0o022:
        return f"other users could write to it: its mode is {stat.S_IMODE(about.st_mode):o}"
    return ""

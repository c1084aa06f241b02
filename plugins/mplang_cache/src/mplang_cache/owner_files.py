"""Folders and keys that belong to one user of this machine, and that nobody else may touch."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from mplang_core.ext import ConfigError

KEY = 32  # bytes


def open_own_folder(path: str, *, within: int | None = None) -> int:
    """Open a folder of this user alone; make it if it is not there.

    Args:
        path: its path. Its last part may be no symbolic link.
        within: descriptor of the folder that the path is relative to.

    Returns:
        Its descriptor.

    Raises:
        ConfigError: it cannot be made or opened, belongs to somebody else, or is open to others.
    """
    try:
        if within is None:
            os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700, dir_fd=within)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(path, flags, dir_fd=within)
    except OSError as error:
        raise ConfigError(
            f"{path} is not a folder for compiled code: {error.strerror}; name a folder that this "
            "user can make, and that is not a symbolic link",
            code="C003",
        ) from None
    try:
        _check_own(os.fstat(folder), path, "700")
    except ConfigError:
        os.close(folder)
        raise
    return folder


def read_or_make_key(path: str) -> bytes:
    """Return the key in a file of this user alone; make it if it is not there.

    Args:
        path: its path.

    Returns:
        At least 32 bytes.

    Raises:
        ConfigError: it cannot be read or made, is too short, belongs to somebody else, or is open
            to others.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read_key(path)
        os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
        made = f"{path}.{secrets.token_hex(8)}"
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(file, "wb") as opened:
                opened.write(secrets.token_bytes(KEY))
            with contextlib.suppress(FileExistsError):  # another process has made one meanwhile
                os.link(made, path)
        finally:
            os.unlink(made)
        return _read_key(path)
    except OSError as error:
        raise ConfigError(
            f"{path} is not a key for compiled code: {error.strerror}", code="C003"
        ) from None


def _read_key(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(file, "rb") as opened:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(
                f"{path} is not a key for compiled code: it is not a file", code="C003"
            )
        _check_own(about, path, "600")
        key = opened.read(1 << 12)
    if len(key) < KEY:
        raise ConfigError(
            f"{path} is not a key for compiled code: it has {len(key)} bytes, of {KEY} or more; "
            "remove it, and another one is made",
            code="C003",
        )
    return key


def _check_own(about: os.stat_result, path: str, mode: str) -> None:
    if about.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to the user {about.st_uid}, and compiled code is kept by the user "
            f"{os.geteuid()}, who runs this process; name another place",
            code="C003",
        )
    if about.st_mode & 0o077:
        raise ConfigError(
            f"{path} is open to other users: its mode is {stat.S_IMODE(about.st_mode):o}. What is "
            f"there may be theirs; empty it, and run  chmod {mode} {path}",
            code="C003",
        )

"""Unix socket that a worker is controlled by: made in a folder of its own, for one group."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path

from mplang_core.ext import ConfigError
from mplang_worker.base.control_config import ControlConfig
from mplang_worker.control.peer import group_number

BACKLOG = 16
PATIENCE = 1.0  # seconds that the worker before has to answer


def listen(config: ControlConfig) -> socket.socket:
    """Return a listening socket, which replaces one that nobody listens to.

    Args:
        config: its path, and the group that may connect.

    Raises:
        ConfigError: it cannot be made, its folder is open to others, or another process has it.
    """
    path, group = Path(config.path), group_number("group", config.group)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_folder(path.parent, group)
        _remove_stale(path)
        before = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
        if group is not None:
            os.chown(path, -1, group)
            os.chmod(path, 0o660)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:  # such as a path of over 107 bytes
        sock.close()
        raise ConfigError(f"field 'control.path': {config.path}: {error}", code="C003") from None
    except BaseException:
        sock.close()
        raise
    return sock


def _make_folder(folder: Path, group: int | None) -> None:
    """Make the folder of the socket, or check that nobody else can put one there.

    Raises:
        ConfigError: others can.
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if group is not None:
            os.chown(folder, -1, group)
            folder.chmod(0o750)
    there = folder.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            f"field 'control.path': {folder} is not a folder of the worker's user", code="C003"
        )
    if stat.S_IMODE(there.st_mode) & 0o027:
        raise ConfigError(
            f"field 'control.path': others may use {folder}, of mode "
            f"{stat.S_IMODE(there.st_mode):o}; put the socket into its own folder, of mode 0750 "
            "with the group of control.group, or 0700",
            code="C003",
        )


def _remove_stale(path: Path) -> None:
    """Remove the socket of a worker that has ended.

    Raises:
        ConfigError: it is not a socket, or a process listens to it.
        OSError: it cannot be removed.
    """
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise ConfigError(f"field 'control.path': {path} is there, and no socket", code="C003")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(PATIENCE)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:
            pass
    raise ConfigError(f"field 'control.path': another process listens at {path}", code="C003")

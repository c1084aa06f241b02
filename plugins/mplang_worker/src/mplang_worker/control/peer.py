"""Peers of a control socket: their roles, by the groups that the kernel says they have."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from enum import StrEnum
from typing import NamedTuple

from mplang_core.ext import ConfigError
from mplang_worker.base.control_config import ControlConfig

SO_PEERGROUPS = 59  # as in asm-generic/socket.h, which Python has no name for
MAX_GROUPS = 256  # of a peer; Python takes options of up to 1024 bytes
_UCRED = struct.Struct("iII")


class ControlRole(StrEnum):
    """Role of a peer of a control socket."""

    OPERATOR = "operator"
    OWNER = "owner"
    AUDITOR = "auditor"


EVERY_ROLE = frozenset(ControlRole)


class Credentials(NamedTuple):
    """Credentials of the other end of a Unix socket, as it connected.

    Attributes:
        user: number of the user.
        groups: numbers of its groups.
    """

    user: int
    groups: frozenset[int]

    @property
    def name(self) -> str:
        """Name of the user, for the log."""
        try:
            return f"{pwd.getpwuid(self.user).pw_name} (uid {self.user})"
        except KeyError:
            return f"uid {self.user}"


def credentials_of(sock: socket.socket) -> Credentials:
    """Return who is at the other end of a Unix socket, as the kernel says.

    Raises:
        OSError: the kernel does not say.
    """
    data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, user, group = _UCRED.unpack(data)
    try:
        more = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * MAX_GROUPS)
    except OSError:  # of more groups than that the first one counts
        more = b""
    others = struct.unpack(f"{len(more) // 4}I", more)
    return Credentials(user, frozenset({group, *others}))


class Roles:
    """Roles of the peers of a control socket.

    Args:
        config: the groups that have them.

    Raises:
        ConfigError: there is no such group.
    """

    def __init__(self, config: ControlConfig) -> None:
        self._groups = {
            ControlRole.OPERATOR: group_number("operators", config.operators),
            ControlRole.OWNER: group_number("owners", config.owners),
            ControlRole.AUDITOR: group_number("auditors", config.auditors),
        }

    def of(self, peer: Credentials) -> frozenset[ControlRole]:
        """Return the roles of a peer; root and the worker's user have all, as they own it."""
        if peer.user in (0, os.geteuid()):
            return EVERY_ROLE
        return frozenset(role for role, group in self._groups.items() if group in peer.groups)


def group_number(field: str, name: str | None) -> int | None:
    """Return the number of a group; ``None`` for no group.

    Args:
        field: the field that names it.
        name: its name.

    Raises:
        ConfigError: there is none of that name.
    """
    if name is None:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(
            f"field 'control.{field}': there is no group {name!r} here", code="C003"
        ) from None

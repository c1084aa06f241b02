"""Section ``control`` of a worker's configuration: the socket of its owner and operators."""

from __future__ import annotations

from mplang_core.ext import StrictModel


class ControlConfig(StrictModel):
    """Control socket of a worker.

    Attributes:
        path: path of the Unix socket; its folder is the worker's user's, and has nothing else.
        group: Unix group whose members may connect; by default the worker's own user and root
            alone may, who have all roles.
        operators: group of those who may drain, reload, list, cancel, close and reset failures.
        owners: group of those who may also pause and resume coordinators.
        auditors: group of those who may list.

    Example:
        >>> ControlConfig(path="control/socket", group="mplang", owners="dpo").auditors is None
        True
    """

    path: str
    group: str | None = None
    operators: str | None = None
    owners: str | None = None
    auditors: str | None = None

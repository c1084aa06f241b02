"""Section ``control`` of a worker's configuration: who controls it, by group or certificate."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from mplang_core.ext import StrictModel

Role: TypeAlias = Literal["operator", "owner", "auditor"]


class ControlConfig(StrictModel):
    """Control socket of a worker.

    Attributes:
        path: path of the Unix socket; its folder is the worker's user's, and has nothing else.
        group: Unix group whose members may connect; by default the worker's own user and root
            alone may, who have all roles.
        operators: group of those who may drain, reload, list, cancel, close and reset failures.
        owners: group of those who may also pause and resume coordinators.
        auditors: group of those who may list.
        certificates: by the common name of a certificate the roles of whoever has it, at the
            worker's port: ``operator``, ``owner``, ``auditor``.

    Example:
        >>> ControlConfig(path="control/socket", group="mplang", owners="dpo").auditors is None
        True
    """

    path: str
    group: str | None = None
    operators: str | None = None
    owners: str | None = None
    auditors: str | None = None
    certificates: dict[str, tuple[Role, ...]] = Field(default_factory=dict)

"""Requirements of feops on devices and clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq, ge, le
from typing import TYPE_CHECKING, Protocol

from mplang_core.types import Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta

_COUNT: dict[str, Callable[[int, int], bool]] = {"=": eq, ">=": ge, "<=": le}


class Target(Protocol):
    """Protocol of what runs programs: a kind of device, or a party."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def reasons_against(self, meta: FeMeta, members: int) -> Sequence[str]:
        """Return the reasons against running a feop directly on a number of members."""

    def __hash__(self) -> int:
        """Return its hash, by which compilers are found in a cache."""


class Party:
    """Target of programs that parties run on no device: plain values, any dialect."""

    name = "party"

    def reasons_against(self, meta: FeMeta, members: int) -> list[str]:
        """Return the reasons against running a feop directly on a number of members."""
        return [*other_form(meta, Form.PLAIN), *misfit(meta, members)]


PARTY_TARGET = Party()
"""The only one."""


def unmet(meta: FeMeta, members: int, world_size: int | None = None) -> list[str]:
    """Return the requirements on numbers that a device, or its cluster, does not meet.

    Args:
        meta: the feop's metadata.
        members: the number of members of the device.
        world_size: the number of parties of the cluster; ``None`` if it is not known.
    """
    reasons = []
    need = meta.capabilities.requires_device
    if need is not None and not _holds(members, need.members):
        reasons.append(f"it requires {need.members} members, the device has {members}")
    world = meta.capabilities.requires_world_size
    if world is not None and world_size is not None and not _holds(world_size, world):
        reasons.append(f"it requires a cluster of {world} parties, this one has {world_size}")
    return reasons


def _holds(found: int, wanted: str) -> bool:
    sign = wanted.rstrip("0123456789")
    return _COUNT[sign](found, int(wanted[len(sign) :]))


def runs_at_parties(meta: FeMeta) -> bool:
    """Return whether a feop is an op of parties: no transform, and none of the controller."""
    return meta.op_kind != "transform" and meta.execution_model != "in_controller"


def targets_of(meta: FeMeta) -> tuple[Form, ...]:
    """Return the forms of values that a feop works on: those of its ``targets``, or plain."""
    return meta.targets or (Form.PLAIN,)


def other_form(meta: FeMeta, form: Form) -> list[str]:
    """Return why a feop does not work on the values of a device of a form.

    Transforms fit all devices, and so do ops of the controller, whose results are put.
    """
    targets = targets_of(meta)
    if not runs_at_parties(meta) or form in targets:
        return []
    wanted = " or ".join(each.value for each in targets)
    return [f"it works on values of form {wanted}, those of the device are of form {form.value}"]


def misfit(meta: FeMeta, members: int) -> list[str]:
    """Return why a feop's execution model does not suit a number of members.

    An op of one party runs on devices of one member, an op of several parties on devices of
    several. Transforms fit all devices, and so do ops of the controller, whose results are put.
    """
    model = meta.execution_model if runs_at_parties(meta) else ""
    if model == "single_rank" and members != 1:
        return [f"it runs at one party, the device has {members}"]
    several = "several parties run it together, the device has one"
    return [several] if model == "multi_party" and members == 1 else []

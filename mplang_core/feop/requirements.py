"""Requirements of feops on devices and clusters."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, le
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta

_COUNT: dict[str, Callable[[int, int], bool]] = {"=": eq, ">=": ge, "<=": le}


def unmet(meta: FeMeta, kind: str, members: int, world_size: int | None = None) -> list[str]:
    """Return the requirements of a feop that a device does not meet.

    Args:
        meta: the feop's metadata.
        kind: the name of the device's kind.
        members: the number of its members.
        world_size: the number of parties of the cluster; ``None`` if it is not known.
    """
    reasons = []
    if meta.targets and kind not in meta.targets:
        reasons.append(f"targets are {', '.join(meta.targets)}, the device is a {kind}")
    need = meta.capabilities.requires_device
    if need is not None:
        if need.kind and kind not in need.kind:
            reasons.append(f"it requires a {' or '.join(need.kind)}, the device is a {kind}")
        if not _holds(members, need.members):
            reasons.append(f"it requires {need.members} members, the device has {members}")
    world = meta.capabilities.requires_world_size
    if world is not None and world_size is not None and not _holds(world_size, world):
        reasons.append(f"it requires a cluster of {world} parties, this one has {world_size}")
    return reasons


def _holds(found: int, wanted: str) -> bool:
    sign = wanted.rstrip("0123456789")
    return _COUNT[sign](found, int(wanted[len(sign) :]))


def misfit(meta: FeMeta, members: int) -> list[str]:
    """Return why a feop's execution model does not suit a number of members.

    An op of one party runs on devices of one member, an op of several parties on devices of
    several. Transforms fit all devices, and so do ops of the controller, whose results are put.
    """
    model = "" if meta.op_kind == "transform" else meta.execution_model
    if model == "single_rank" and members != 1:
        return [f"it runs at one party, the device has {members}"]
    several = "several parties run it together, the device has one"
    return [several] if model == "multi_party" and members == 1 else []

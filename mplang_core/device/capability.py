"""Whether a device can run a feop, and how; from metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mplang_core.device.kinds import Device, DeviceKind, Lowering
from mplang_core.feop import unmet
from mplang_core.types import Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import FeMeta


@dataclass(frozen=True, slots=True)
class Route:
    """How a device runs a feop, or why it does not.

    Attributes:
        reasons: the requirements that are not met; with none of them it runs.
        lowering: how the device compiles it, where it is not made for the device.
    """

    reasons: tuple[str, ...] = ()
    lowering: Lowering | None = None

    @property
    def fits(self) -> bool:
        """Whether the device runs it."""
        return not self.reasons


def route(meta: FeMeta, device: Device, world_size: int | None = None) -> Route:
    """Find how a device runs a feop. Depends on nothing but its arguments.

    The feop's requirements come first (targets, device, world size, visibility); then the
    device's kind says whether it takes the feop as it is; else it may compile its dialect.

    Args:
        meta: the feop's metadata.
        device: the device.
        world_size: how many parties there are at all, if that is known.

    Example:
        >>> import mplang_core as mp
        >>> cluster = mp.ClusterSpec.simple(2)
        >>> meta = FeMeta(name="demo.op", execution_model="multi_party")
        >>> route(meta, cluster.device("P0")).reasons
        ('several parties run it together, the device has one',)
    """
    members = len(device.mask)
    reasons = unmet(meta, device.kind.name, members, world_size)
    reasons += _unseen(meta, device.kind)
    own = list(device.kind.unsupported_reasons(meta, members))
    lowering = device.kind.lowering
    if own and lowering is not None and set(meta.dialects) & set(lowering.dialects):
        return Route(tuple(reasons), lowering)
    return Route((*reasons, *own))


def _unseen(meta: FeMeta, kind: DeviceKind) -> list[str]:
    seen = meta.capabilities.supports_visibility
    here = ("PUBLIC", "PRIVATE") if kind.form is Form.PLAIN else ("SECRET",)
    if not seen or set(seen) & set(here):
        return []
    return [f"it works on {' or '.join(seen)} values, those of a {kind.name} are {here[-1]}"]

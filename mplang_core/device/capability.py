"""Capability check: whether and how a device runs a feop, by metadata alone."""

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
    """Result of a capability check.

    Attributes:
        reasons: the unmet requirements; if empty, the device runs the feop.
        lowering: the lowering to use; ``None`` if the device runs the feop directly.
    """

    reasons: tuple[str, ...] = ()
    lowering: Lowering | None = None

    @property
    def fits(self) -> bool:
        """Whether the device runs the feop."""
        return not self.reasons


def route(meta: FeMeta, device: Device, world_size: int | None = None) -> Route:
    """Return whether and how a device runs a feop; a pure function of its arguments.

    A device runs a feop directly if the feop works on values of its form and suits its members,
    and its kind has the feop's dialect and no reason of its own against it. Otherwise its kind may
    have a lowering for the dialect. Both need what the feop requires of numbers of members and
    parties, and of visibility.

    Args:
        meta: the feop's metadata.
        device: the device.
        world_size: the number of parties of the cluster; ``None`` if it is not known.

    Returns:
        The reasons against running it, and the lowering to use.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_core.ext import FeMeta
        >>> cluster = mp.ClusterSpec.simple(2)
        >>> meta = FeMeta(name="demo.op", execution_model="multi_party")
        >>> route(meta, cluster.device("P0")).reasons
        ('several parties run it together, the device has one',)
    """
    members = len(device.mask)
    reasons = [*unmet(meta, members, world_size), *_unseen(meta, device.kind)]
    own = device.kind.reasons_against(meta, members)
    lowering = device.kind.lowering
    if own and lowering is not None and lowering.takes(meta):
        return Route(tuple(reasons), lowering)
    return Route((*reasons, *own))


def _unseen(meta: FeMeta, kind: DeviceKind) -> list[str]:
    seen = meta.capabilities.supports_visibility
    here = ("PUBLIC", "PRIVATE") if kind.form is Form.PLAIN else ("SECRET",)
    if not seen or set(seen) & set(here):
        return []
    return [f"it works on {' or '.join(seen)} values, those of a {kind.name} are {here[-1]}"]

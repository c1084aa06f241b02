"""Devices of one party each, which hold its values in plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mplang_core.device.capability import route
from mplang_core.device.cluster import ClusterSpec
from mplang_core.device.kinds import Device, device_kinds
from mplang_core.errors import TraceError
from mplang_core.feop.decorator import meta_of
from mplang_core.ir.source_line import at
from mplang_core.types import Form

if TYPE_CHECKING:  # pydantic takes long to import
    from mplang_core.feop.meta import Feop


def devices_of_parties(cluster: ClusterSpec, op: Feop | None = None) -> list[Device]:
    """Return the plain devices of one member, in the order of the cluster.

    Args:
        cluster: the cluster. Devices of kinds that are not installed are left out.
        op: a feop that the devices can run; any by default.

    Example:
        >>> [device.name for device in devices_of_parties(ClusterSpec.simple(2))]
        ['P0', 'P1']
    """
    names = [name for name, spec in cluster.devices.items() if spec.kind in device_kinds]
    alone = [device for device in map(cluster.device, names) if len(device.mask) == 1]
    plain = [device for device in alone if device.kind.form is Form.PLAIN]
    return [device for device in plain if op is None or route(meta_of(op), device).fits]


def device_of_party(cluster: ClusterSpec, party: str, op: Feop | None = None) -> Device:
    """Return the plain device of a party.

    Args:
        cluster: the cluster.
        party: the name of the party, or of such a device.
        op: a feop that the device can run; any by default.

    Raises:
        TraceError: there is none, or the name is that of a party and of a device of another one.

    Example:
        >>> device_of_party(ClusterSpec.simple(2), "P1").name
        'P1'
    """
    devices = devices_of_parties(cluster, op)
    named = [each for each in devices if each.name == party]
    ranks = {node.rank for node in cluster.nodes if node.name == party}
    if len(ranks | {each.mask.first for each in named}) > 1:
        raise TraceError(
            f"{at()}{party!r} is a party, and a device of another one; rename one", code="T007"
        )
    for each in [*named, *(each for each in devices if each.mask.first in ranks)]:
        return each
    names = ", ".join(node.name for node in cluster.nodes)
    raise TraceError(
        f"{at()}no party {party!r} with a plain device of its own; the parties are {names}",
        code="T007",
    )

"""Devices of one party each, which hold its values in plain."""

from __future__ import annotations

from typing import Any

from mplang_core import ClusterSpec, Form
from mplang_core.ext import Device, device_kinds, meta_of, route


def devices_of_parties(cluster: ClusterSpec, op: Any = None) -> list[Device]:
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

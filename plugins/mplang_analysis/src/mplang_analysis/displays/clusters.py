"""Displays of clusters and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_analysis.prompt_text import shortened
from mplang_analysis.report import TextTable, sections
from mplang_core import ClusterSpec
from mplang_core.ext import Device, device_kinds

LONGEST = 60
"""Characters of a setting that are shown."""


def show(cluster: ClusterSpec) -> str:
    """Return the parties and devices of a cluster as HTML.

    Example:
        >>> "node1" in show(ClusterSpec.simple(2))
        True
    """
    names = {node.rank: node.name for node in cluster.nodes}
    parties = [[str(node.rank), node.name, node.address or "-"] for node in cluster.nodes]
    devices = []
    for name, spec in cluster.devices.items():
        members = [names.get(each, str(each)) for each in spec.members]  # type: ignore[arg-type]
        devices.append(_device(name, spec.kind, members, spec.config))
    return sections(
        [
            TextTable("Parties", ["rank", "name", "address"], parties),
            TextTable("Devices", ["device", "kind", "parties", "settings"], devices),
        ]
    )


def show_device(device: Device) -> str:
    """Return what a device is, and its settings, as HTML.

    Example:
        >>> "a party runs" in show_device(ClusterSpec.simple(2).device("P0"))
        False
    """
    settings = device.config.model_dump() if hasattr(device.config, "model_dump") else {}
    row = _device(device.name, device.kind.name, [str(device.mask)], settings)
    title = device.kind.doc or "Device"
    return sections([TextTable(title, ["device", "kind", "parties", "settings"], [row])])


def _device(
    name: str, kind: str, members: Sequence[str], settings: Mapping[str, object]
) -> list[str]:
    known = device_kinds.peek(kind)
    model = known.config if known is not None else None
    secret = model.secret if model is not None else frozenset()
    shown = [f"{key}={_text(value)}" for key, value in settings.items() if key not in secret]
    return [name, kind, ", ".join(members), ", ".join(shown) or "-"]


def _text(value: object) -> str:
    return shortened(str(value), LONGEST)

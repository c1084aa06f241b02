"""Devices: logical places, what runs on them, and how values move between them."""

from mplang_core.device.api import device, put, reveal, seal
from mplang_core.device.cluster import ClusterSpec, Node
from mplang_core.device.kinds import (
    PARTY,
    Device,
    DeviceKind,
    DeviceSpec,
    Lowering,
    Transfer,
    add_transfer,
    device_kinds,
    transfers,
)
from mplang_core.device.ppu import PPU, the_holder
from mplang_core.device.routing import Route, route, some_device

__all__ = [
    "PARTY",
    "PPU",
    "ClusterSpec",
    "Device",
    "DeviceKind",
    "DeviceSpec",
    "Lowering",
    "Node",
    "Route",
    "Transfer",
    "add_transfer",
    "device",
    "device_kinds",
    "put",
    "reveal",
    "route",
    "seal",
    "some_device",
    "the_holder",
    "transfers",
]

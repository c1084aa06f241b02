"""Messages on moves between devices that have no transfer."""

from __future__ import annotations

from collections.abc import Iterable

from mplang_core.device.kinds import Device, find_transfer
from mplang_core.edsl import MPObject
from mplang_core.ir.source_line import at
from mplang_core.types import Form


def no_way(
    value: MPObject, src: Device | None, dst: Device | None, devices: Iterable[Device]
) -> str:
    """Return what a move lacks, and how the value gets there by a reveal, if it does.

    Nothing goes from one protected device to another through plain unless the program reveals it.

    Args:
        value: the value.
        src: its device; ``None`` for no device.
        dst: the destination; ``None`` for all parties.
        devices: those of the cluster.
    """
    lacks = f"{at()}there is no way from {_name(src)} to {_name(dst)}"
    if dst is None or dst.kind.form is Form.PLAIN:
        return f"{lacks}: no transfer opens what is on a {_kind(src)}"
    if src is None or src.kind.form is Form.PLAIN:
        return f"{lacks}: no transfer takes {value!r} to a {dst.kind.name}"
    secret = f"{lacks} that discloses nothing"
    plain = [each for each in devices if each.kind.form is Form.PLAIN]
    readers = [each for each in plain if find_transfer(src, each) and find_transfer(each, dst)]
    if not readers:
        return f"{secret}, and no plain device here can open it and hand it on"
    return (
        f"{secret}. By way of {' or '.join(each.name for each in readers)} its party learns it; if "
        f"that is meant, write mp.put({dst.name!r}, mp.reveal(x, to={readers[0].name!r}))"
    )


def _kind(device: Device | None) -> str:
    return "party" if device is None else device.kind.name


def _name(device: Device | None) -> str:
    return "no device" if device is None else str(device)

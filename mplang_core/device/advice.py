"""Messages on moves that are refused, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

from mplang_core.device.kinds import Consent, Device, find_transfer
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
        return f"{lacks}: no transfer opens what is on it"
    if src is None or src.kind.form is Form.PLAIN:
        return f"{lacks}: no transfer takes {value!s} to a {dst.kind.name}"
    secret = f"{lacks} that discloses nothing"
    plain = [each for each in devices if each.kind.form is Form.PLAIN]
    readers = [each for each in plain if find_transfer(src, each) and find_transfer(each, dst)]
    if not readers:
        return f"{secret}, and no plain device here can open it and hand it on"
    return (
        f"{secret}. By way of {' or '.join(each.name for each in readers)} its party learns it; if "
        f"that is meant, write mp.put({dst.name!r}, mp.reveal(x, to={readers[0].name!r}))"
    )


def disclosed(value: MPObject, src: Device | None, dst: Device | None, needed: Consent) -> str:
    """Return which consent a move needs.

    Args:
        value: the value.
        src: its device; ``None`` for no device.
        dst: the destination; ``None`` for all parties.
        needed: the consent.
    """
    if value.base_type.form is Form.KEY:
        return f"{at()}{value!s}: a key stays with its party; run what uses it on {_name(src)}"
    if dst is None:
        how = "mp.reveal(x)"
    else:
        how = f"mp.put({dst.name!r}, x)" if needed == "put" else f"mp.reveal(x, to={dst.name!r})"
    return (
        f"{at()}{value!s} is on {_name(src)}; a move to {_name(dst)} would disclose it. "
        f"If that is meant, write {how}"
    )


def opened_for(target: Device, others: Iterable[Device]) -> str:
    """Return the advice how a plain device gets what is on a protected one, or nothing.

    Args:
        target: the protected device.
        others: devices that run what the protected one does not.
    """
    plain = [device.name for device in others if device.kind.form is Form.PLAIN]
    if target.kind.form is Form.PLAIN or not plain:
        return ""
    return f". mp.reveal(x, to={plain[0]!r}) hands it the value, which its party then knows"


def _name(device: Device | None) -> str:
    return "no device" if device is None else str(device)

"""The device of one party, in plain; and what it means to hand its values on."""

from __future__ import annotations

from mplang_core.device.kinds import (
    PARTY,
    Device,
    DeviceKind,
    Spelling,
    add_transfer,
    device_kinds,
)
from mplang_core.edsl import MPObject
from mplang_core.ir.source import at
from mplang_core.errors import TraceError
from mplang_core.simp.api import pshfl_s
from mplang_core.types import Form

__all__ = ["PPU"]

PROVIDER = "mplang-core"

PPU = DeviceKind("PPU", Form.PLAIN, doc="Plain processing at one party.")
device_kinds.add("PPU", PPU, provider=PROVIDER)


def _held(value: MPObject, src: Device | None, dst: Device) -> Spelling:
    return "auto" if value.pmask is not None and dst.mask <= value.pmask else "put"


@add_transfer("PPU", "PPU", _held, provider=PROVIDER)
@add_transfer(PARTY, "PPU", _held, provider=PROVIDER)
def to_ppu(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Send a plain value to another party, where it is not there yet."""
    if value.pmask == dst.mask:
        return value
    if value.pmask is None:
        raise TraceError(
            f"{at()}who holds {value!r} is known only at run time; "
            "shuffle it with mp.pshfl_s, or run its pcall at parties that are named"
        )
    source = dst.mask.first if dst.mask <= value.pmask else value.pmask.first
    return pshfl_s(value, dst.mask, [source])


@add_transfer("PPU", PARTY, "reveal", provider=PROVIDER)
def to_all(value: MPObject, src: Device, dst: None) -> MPObject:
    """Send a plain value to all parties."""
    everyone = value.ctx.mask
    return pshfl_s(value, everyone, [src.mask.first] * len(everyone))

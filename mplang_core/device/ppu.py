"""Device kind ``PPU``, plain processing at one party, and its transfers."""

from __future__ import annotations

from mplang_core.device.kinds import PARTY, Consent, Device, DeviceKind, Transfer, add_kind
from mplang_core.edsl import MPObject
from mplang_core.errors import TraceError
from mplang_core.ir.source_line import at
from mplang_core.simp.ops import pshfl_s
from mplang_core.types import Form


def _held(value: MPObject, src: Device | None, dst: Device) -> Consent:
    return "auto" if value.pmask is not None and dst.mask <= value.pmask else "put"


def to_ppu(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Return a plain value at the party of a device; send it if the party does not hold it."""
    if value.pmask == dst.mask:
        return value
    if value.pmask is None:
        raise _unknown_holder(value)
    source = dst.mask.first if dst.mask <= value.pmask else the_holder(value)
    return pshfl_s(value, dst.mask, [source])


def _unknown_holder(value: MPObject) -> TraceError:
    return TraceError(
        f"{at()}who holds {value!r} is known only at run time; "
        "shuffle it with mp.pshfl_s, or run its pcall at parties that are named"
    )


def the_holder(value: MPObject) -> int:
    """Return the lowest rank that holds a uniform value.

    Args:
        value: a value whose mask is known.

    Raises:
        TraceError: the value is not uniform, so its holders may have different values.
    """
    assert value.pmask is not None
    if not value.uniform:
        raise TraceError(
            f"{at()}each of {value.pmask} may hold another {value!r}; say whose is meant, as in "
            f"mp.pshfl_s(x, {value.pmask.first}, {value.pmask.first}), or mp.put it at one of them"
        )
    return value.pmask.first


def to_all(value: MPObject, src: Device | None, dst: None) -> MPObject:
    """Return a plain value at all parties."""
    if value.pmask is None:
        raise _unknown_holder(value)
    everyone = value.ctx.mask
    return pshfl_s(value, everyone, [the_holder(value)] * len(everyone))


PPU = DeviceKind(
    "PPU",
    Form.PLAIN,
    transfers=[
        Transfer("PPU", "PPU", to_ppu, _held),
        Transfer(PARTY, "PPU", to_ppu, _held),
        Transfer("PPU", PARTY, to_all, "reveal"),
        Transfer(PARTY, PARTY, to_all, "reveal"),
    ],
    doc="Plain processing at one party.",
)
add_kind(PPU, provider="mplang-core")

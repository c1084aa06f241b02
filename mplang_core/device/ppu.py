"""Device kind ``PPU``, plain processing at one party, and the transfer of plain values."""

from __future__ import annotations

import itertools

from mplang_core.device.kinds import PARTY, Consent, Device, DeviceKind, Transfer, add_kind
from mplang_core.edsl import MPObject
from mplang_core.errors import TraceError
from mplang_core.ir.source_line import at
from mplang_core.simp.ops import pshfl_s
from mplang_core.types import Form


def _consent(value: MPObject, src: Device | None, dst: Device | None) -> Consent:
    if dst is None:
        return "reveal"
    return "auto" if value.pmask is not None and dst.mask <= value.pmask else "put"


def send_plain(value: MPObject, src: Device | None, dst: Device | None) -> MPObject:
    """Return a plain value at the members of a device, or at all parties; send it if need be.

    Args:
        value: the value; its mask is known.
        src: unused.
        dst: the plain device; ``None`` for all parties.

    Raises:
        TraceError: who holds the value is known only at run time, or its holders may have
            different values, and it is not said whose is meant.
    """
    if value.pmask is None:
        raise _unknown_holder(value)
    if dst is None:
        everyone = value.ctx.mask
        return pshfl_s(value, everyone, [the_holder(value)] * len(everyone))
    is_alone = len(dst.mask) == 1
    if value.pmask == dst.mask and (is_alone or value.uniform):
        return value
    own = is_alone and dst.mask <= value.pmask
    source = dst.mask.first if own else the_holder(value)
    return pshfl_s(value, dst.mask, [source] * len(dst.mask))


def _unknown_holder(value: MPObject) -> TraceError:
    return TraceError(
        f"{at()}the holder of {value!s} is known only at run time; "
        "shuffle it with mp.pshfl_s, or run its pcall at parties that are named",
        code="T008",
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
            f"{at()}each of {value.pmask} may hold another {value!s}; say whose is meant, as in "
            f"mp.pshfl_s(x, {value.pmask.first}, {value.pmask.first}), or mp.put it at one of them",
            code="T008",
        )
    return value.pmask.first


_NAMED = ("PPU", PARTY)  # so that a move among these loads no plugin
_ENDS: list[tuple[str | Form, str | Form]] = [
    *itertools.product(_NAMED, _NAMED),
    (Form.PLAIN, Form.PLAIN),
]

PPU = DeviceKind(
    "PPU",
    Form.PLAIN,
    transfers=[Transfer(src, dst, send_plain, _consent) for src, dst in _ENDS],
    doc="Plain processing at one party.",
)
add_kind(PPU, provider="mplang-core")

"""The device kind ``VAULT``, and the ways into it and out of it.

A vault belongs to two parties. Each holds one half of every value, and neither half tells anything
of the value; together they open it. That protects against one curious member, not against both,
nor against one that returns a wrong half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mplang_core import Form, Mask, MPObject, TensorType, pconv, pshfl_s
from mplang_core.ext import (
    PARTY,
    Device,
    DeviceKind,
    FeMeta,
    TraceError,
    Transfer,
    run_program,
    the_holder,
)

from mplang_hello.ops import join, split


def unsupported_reasons(meta: FeMeta, members: int) -> Sequence[str]:
    """Return why a vault does not run a feop: it runs only what is made for halves."""
    if "VAULT" in meta.targets:
        return []
    return [f"a vault runs only what names it as a target; reveal the value to run {meta.name}"]


def lock(value: MPObject, src: Device | None, dst: Device) -> MPObject:
    """Split a tensor at a party that holds it, and hand each member its half."""
    if not isinstance(value.base_type, TensorType) or value.pmask is None:
        raise TraceError(f"a VAULT takes tensors that named parties hold, got {value!r}")
    holder = the_holder(value)
    halves: Any = run_program(split(value), Mask.of(holder))
    moved = [
        half if member == holder else pshfl_s(half, member, [holder])
        for half, member in zip(halves, dst.mask, strict=True)
    ]
    return pconv(moved)


def unlock(value: MPObject, src: Device, dst: Device | None) -> MPObject:
    """Hand both halves to those who may know, and join them there."""
    readers = value.ctx.mask if dst is None else dst.mask
    halves = [pshfl_s(value, readers, [member] * len(readers)) for member in src.mask]
    return cast(MPObject, run_program(join(*halves), readers))


VAULT = DeviceKind(
    "VAULT",
    Form.SHARE,
    members=(2, 2),
    unsupported_reasons=unsupported_reasons,
    transfers=[
        Transfer("PPU", "VAULT", lock, "auto"),
        Transfer(PARTY, "VAULT", lock, "auto"),
        Transfer("VAULT", "PPU", unlock, "reveal"),
        Transfer("VAULT", PARTY, unlock, "reveal"),
    ],
    doc="Two parties keep a value that only both together can open.",
)

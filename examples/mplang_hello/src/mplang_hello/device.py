"""The device kind ``VAULT``, and the ways into it and out of it.

A vault belongs to two parties. Each holds one half of every value, and neither half tells anything
of the value; together they open it. That protects against one curious member, not against both,
nor against one that returns a wrong half.
"""

from __future__ import annotations

from typing import Any, cast

from mplang_core import Form, Mask, MPObject, TensorType, pconv, pshfl_s
from mplang_core.ext import (
    Device,
    DeviceKind,
    TraceError,
    Transfer,
    run_program,
    the_holder,
)

from mplang_hello.ops import join, split


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
    dialects=("hello",),
    transfers=[
        Transfer(Form.PLAIN, "VAULT", lock, "auto"),
        Transfer("VAULT", Form.PLAIN, unlock, "reveal"),
    ],
    doc="Two parties keep a value that only both together can open.",
)

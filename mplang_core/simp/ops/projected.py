"""Ops that exist only after projection: ``simp.send``, ``simp.recv``, ``simp.nothing``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import AnyType, Attr, Effects, Level, OpDef, Operation
from mplang_core.ir.origin import origin_of
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.ops.common import check_sendable, declare, received
from mplang_core.types import BaseType, MPType


def _operands(op: Operation, number: int) -> Sequence[AnyType]:
    if len(op.inputs) != number:
        raise TypeError(f"expected {number} operands, got {len(op.inputs)}")
    return [value.type for value in op.inputs]


def _check_place(op: Operation) -> None:
    if origin_of(op) is None:
        raise TypeError("attributes missing: place, where it stands in the whole program")


def _send(op: Operation, world: Mask) -> Sequence[AnyType]:
    (src,) = _operands(op, 1)
    _check_place(op)
    if not op.attrs["to"]:
        raise ValueError("it is sent to no party")
    check_sendable(src)
    return []


def _recv(op: Operation, world: Mask) -> Sequence[AnyType]:
    _operands(op, 0)
    _check_place(op)
    received = MPType(op.attrs["kind"], world)
    if len(world) != 1:
        raise ValueError(f"it stands in a program of one party, not of {world}")
    if op.attrs["source"] < 0:
        raise ValueError(f"a rank is not negative, got {op.attrs['source']}")
    check_sendable(received)
    return [received]


def _nothing(op: Operation, world: Mask) -> Sequence[AnyType]:
    _operands(op, 0)
    return [MPType(op.attrs["kind"], None)]


declare(
    OpDef(
        "simp.send",
        _send,
        Level.PARTY,
        {"to": Attr(Mask, doc="who receives it")},
        doc="In a projection: sends a value to others.",
        projected=True,
    ),
    OpDef(
        "simp.recv",
        _recv,
        Level.PARTY,
        {
            "source": Attr(int, doc="the rank of the one who sends it"),
            "kind": Attr(BaseType, doc="what it is"),
        },
        doc="In a projection: receives a value from another.",
        projected=True,
    ),
    OpDef(
        "simp.nothing",
        _nothing,
        Level.PARTY,
        {"kind": Attr(BaseType, doc="what others may have")},
        doc="In a projection: a value that this party does not have.",
        effects=Effects.NONE,
        projected=True,
    ),
)


@kernel("simp.send")
def send(ctx: KernelContext, src: Any, *, to: Mask) -> tuple[()]:
    """Send the value to each receiver; a missing value too, since the receiver reports it."""
    for rank in to:
        ctx.interpreter.communicator.send(rank, ctx.key, src)
    return ()


@kernel("simp.recv")
def recv(ctx: KernelContext, *, source: int, kind: BaseType) -> Any:
    """Wait for the value and check its type."""
    return received(ctx.interpreter.communicator.recv(source, ctx.key), source, kind)


@kernel("simp.nothing")
def nothing(ctx: KernelContext, *, kind: BaseType) -> None:
    """Return ``None``: the party does not hold the value."""

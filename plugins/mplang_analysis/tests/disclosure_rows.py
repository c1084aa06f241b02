"""The rows of a table of disclosures, and programs to ask for."""

from __future__ import annotations

import pathlib

import mplang_core as mp
from mplang_core import analysis
from mplang_core.ext import Message
from mplang_core.ir import Level, OpDef, op_defs

SCALAR, VECTOR, BOOL = (mp.TensorType("i64"), mp.TensorType("f32", (3,)), mp.TensorType("bool"))

op_defs.add(
    "opaque.mix",
    OpDef("opaque.mix", lambda op, world: [SCALAR], doc="Has no feop: nothing is known of it."),
    provider="tests",
)
op_defs.add(
    "opaque.maybe",
    OpDef(
        "opaque.maybe",
        lambda op, world: [value.type for value in op.regions["body"].outputs],
        Level.PARTY,
        regions={"body": Level.PARTY},
    ),
    provider="tests",
)


class _ToAll:
    """Every party sends the operand to every other one."""

    def messages(self, op, world):
        return [Message(a, b, 0) for a in world for b in world if a != b]


op_defs.add(
    "opaque.gossip",
    OpDef("opaque.gossip", lambda op, world: [SCALAR], interfaces=(_ToAll(),)),
    provider="tests",
)


class _IfItRains:
    """Sends the operand on a condition that no package declares."""

    def messages(self, op, world):
        return [Message(0, 1, 0, when="if it rains")]


op_defs.add(
    "opaque.rain",
    OpDef("opaque.rain", lambda op, world: [SCALAR], interfaces=(_IfItRains(),)),
    provider="tests",
)


class _Silent:
    """Sends the operand, and does not say so."""

    def messages(self, op, world):
        return []


class _SilentCopy(_Silent):
    """The same, of an output that is said to be a copy."""

    def sources(self, op, output):
        return (0,)


for _name, _interface in {"silent": _Silent(), "silent_copy": _SilentCopy()}.items():
    op_defs.add(
        f"opaque.{_name}",
        OpDef(
            f"opaque.{_name}",
            lambda op, world: [mp.MPType(op.inputs[0].type.base, world)],
            Level.PARTY,
            interfaces=(_interface,),
        ),
        provider="tests",
    )


def at(base: mp.BaseType, *ranks: int) -> mp.MPType:
    return mp.MPType(base, mp.Mask.of(ranks))


def trace(fn, *types, parties: int = 2):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), fn, *types)


def rows(
    subject, *, results: bool = False, failures: bool = False, beside: bool = False, **options
):
    """Return the rows without bytes and types, and without lines.

    Args:
        beside: whether sizes, durations and changes are among them.
    """
    left_out = {"result": not results, "failure": not failures}
    left_out |= dict.fromkeys(["size", "duration", "change"], not beside)
    return [
        (row.what, row.sender, row.receiver, row.form, row.inputs, row.discloses, row.when)
        for row in analysis.disclosure(subject, **options).rows
        if not left_out.get(row.what)
    ]


def line_of(fn, offset: int) -> str:
    return f"{pathlib.Path(fn.__code__.co_filename).name}:{fn.__code__.co_firstlineno + offset}"


def moves(fn, *types, parties: int = 3, **options):
    """Return sender, receiver, whose data, and whose is disclosed, of what is protected."""
    table = analysis.disclosure(trace(fn, *types, parties=parties), **options)
    return [
        (row.sender, row.receiver, row.inputs, row.discloses)
        for row in table.rows
        if row.what in ("move", "reveal") and row.form in ("share", "ciphertext")
    ]

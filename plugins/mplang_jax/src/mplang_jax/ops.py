"""Op ``jax.run``, whose types are inferred from the code itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mplang_analysis import (
    Constant,
    ConstantsRule,
    Interval,
    OpRanges,
    RangeRule,
    SideChannelRule,
    SideChannels,
)
from mplang_passes import Exact
from mplang_stablehlo import RunsStableHlo, constants_of_code, facts_of, signature_of

from mplang_core import Mask
from mplang_core.ext import AnyType, Attr, Effects, OpDef, Operation, Value

MAX_SHOWN = 20  # types in a message


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    takes, gives = signature_of(op.attrs["code"])
    found = tuple(value.type for value in op.inputs)
    if found != takes:
        raise TypeError(f"the code takes ({_list(takes)}), got ({_list(found)})")
    return gives


def _list(types: Sequence[object]) -> str:
    shown = ", ".join(map(str, types[:MAX_SHOWN]))
    return shown if len(types) <= MAX_SHOWN else f"{shown}, and {len(types) - MAX_SHOWN} more"


def _ranges(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    from mplang_jax.ranges import ranges_of

    return ranges_of(op, ins)


def _constants(op: Operation) -> Sequence[Constant]:
    return constants_of_code(op.attrs["code"])


def _side_channels(op: Operation) -> SideChannels:
    from mplang_stablehlo.ext import deciding_operands

    try:
        return SideChannels(duration=deciding_operands(op.attrs["code"]))
    except ValueError:  # nobody runs it
        return SideChannels(duration=range(len(op.inputs)))


class _RunsOnXla(RunsStableHlo, Exact):
    def is_exact(self, op: Operation) -> bool:
        return facts_of(op.attrs["code"]).is_exact

    def code(self, op: Operation) -> bytes:
        code: bytes = op.attrs["code"]
        return code

    def engine(self, op: Operation) -> str:
        return "xla"

    def linked(
        self, ops: Sequence[Operation], code: bytes, ins: Sequence[Value], outs: Sequence[Value]
    ) -> Operation | None:
        from mplang_jax.admission import is_admitted

        if not is_admitted(code):
            return None
        wide = any(op.attrs["x64"] for op in ops)
        attrs = {**ops[0].attrs, "code": code, "x64": wide}
        return replace(ops[0], inputs=tuple(ins), outputs=tuple(outs), attrs=attrs)


RUN = OpDef(
    "jax.run",
    _infer,
    attrs={
        "code": Attr(bytes, doc="StableHLO text, zlib-compressed"),
        "x64": Attr(bool, doc="whether 64-bit types stay as they are"),
        "jax": Attr(str, doc="the version of JAX that made it"),
        "stablehlo": Attr(str, doc="the version of StableHLO that it is written in"),
    },
    doc="Runs StableHLO on XLA: tensors in, tensors out. No Python source is needed.",
    effects=Effects.NONE,
    reads=(),
    total=True,
    interfaces=[
        RangeRule(_ranges),
        _RunsOnXla(),
        ConstantsRule(_constants),
        SideChannelRule(_side_channels),
    ],
)

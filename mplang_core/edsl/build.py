"""Op construction: default attributes, inferred outputs, source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.edsl.context import MPContext
from mplang_core.ir import Graph, Level, Operation, Value, op_defs
from mplang_core.ir.source_line import caller, trace_errors
from mplang_core.ir.verifier import infer_outputs


def make_op(
    opcode: str,
    inputs: Sequence[Value],
    attrs: Mapping[str, Any] | None,
    regions: Mapping[str, Graph] | None,
    ctx: MPContext,
) -> Operation:
    """Return an op with default attributes, inferred outputs and the user's line.

    Args:
        opcode: the op's name, ``dialect.op``.
        inputs: the operands.
        attrs: the attributes; the definition's defaults are added.
        regions: the regions by name.
        ctx: the context of the op, which determines its level and its parties.

    Raises:
        TraceError: the op's definition rejects it.
    """
    op_def = op_defs.get(opcode)
    with trace_errors(opcode):
        complete = op_def.complete(attrs or {}) if op_def is not None else dict(attrs or {})
        op = Operation(opcode, tuple(inputs), (), complete, dict(regions or {}), caller())
        level = Level.LOCAL if ctx.is_local else Level.PARTY
        if op_def is not None and op_def.level is not level:
            raise TypeError(f"it stands at {op_def.level.value} level, not at {level.value} level")
        op.outputs = tuple(map(Value, infer_outputs(op, ctx.mask)))
    return op

"""Ops ``func.call`` and ``func.launch``: calls of functions of multi-party values.

The function is a region of the op. The host interprets a call in standard mode and submits it as
a whole in launch mode; it submits a launch as a whole in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import AnyType, Attr, Graph, Level, Operation, Program, Value
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import Call, ControlFlow, Labels
from mplang_core.simp.ops.common import declare, single
from mplang_core.simp.ops.regions import check_taken


def call_program(program: Program) -> Program:
    """Return a program that calls another one; the kernel of the call depends on the mode."""
    inputs = [Value(value.type) for value in program.graph.inputs]
    outputs = [Value(value.type) for value in program.graph.outputs]
    attrs, regions = {"name": program.name}, {"body": program.graph}
    call = Operation("func.call", tuple(inputs), tuple(outputs), attrs, regions)
    return Program(program.name, program.mask, Graph(inputs, [call], outputs))


class _Call(ControlFlow, Labels):
    def control(self, op: Operation) -> Call:
        return Call("body")

    def label(self, op: Operation) -> str:
        return f"call {op.attrs['name']}"


_NAMED = {"name": Attr(str, doc="the function's name")}


@declare("func.call", _Call(), _NAMED, {"body": Level.PARTY})
def _infer_call(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Calls a function of multi-party values."""
    check_taken(op, [value.type for value in op.inputs], f"{op.attrs['name']}: region")
    return [value.type for value in op.regions["body"].outputs]


@declare("func.launch", _Call(), _NAMED, {"body": Level.PARTY})
def _infer_launch(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Calls a function of multi-party values; the parties run it whole."""
    return _infer_call(op, world)


@kernel("func.call", role="host")
@kernel("func.call", "func.launch", role="worker")
def interpret(ctx: KernelContext, *args: Any, name: str) -> Any:
    """Run the body op by op."""
    return single(ctx, ctx.run_region("body", args))


@kernel("func.launch", role="host")
def launch(ctx: KernelContext, *args: Any, name: str) -> Any:
    """Submit the body to all parties as a whole."""
    step = ctx.step
    if step.cache is None:
        step.cache = Program(name, ctx.interpreter.mask, step.op.regions["body"])
    return single(ctx, ctx.interpreter.submit(step.cache, args))

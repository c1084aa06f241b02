"""Functions as ops: ``func.call`` and ``func.launch``.

A function is a region of the op that calls it. A call is interpreted by the host in standard mode
and sent away whole in launch mode; a launch is sent away whole in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.ir import AnyType, Attr, Effects, Level, OpDef, Operation, Program, op_defs
from mplang_core.ir.passes import run_passes
from mplang_core.ir.place import PLACE
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel, launch_kernels

__all__: list[str] = []


def _call(op: Operation, world: Mask) -> Sequence[AnyType]:
    body = op.regions["body"]
    taken = [value.type for value in body.inputs]
    given = [value.type for value in op.inputs]
    if taken != given:
        raise TypeError(
            f"{op.attrs['name']} takes ({', '.join(map(str, taken))}), "
            f"got ({', '.join(map(str, given))})"
        )
    return [value.type for value in body.outputs]


for _name, _doc in (
    ("func.call", "Calls a function of multi-party values."),
    ("func.launch", "Calls a function of multi-party values; the parties run it whole."),
):
    op_defs.add(
        _name,
        OpDef(
            _name,
            _call,
            Level.PARTY,
            {"name": Attr(str, doc="the function's name"), "place": PLACE},
            {"body": Level.PARTY},
            _doc,
            Effects.NONE,
        ),
        provider="mplang-core",
    )


@kernel("func.call", role="host")
@kernel("func.call", "func.launch", role="worker")
def interpret(ctx: KernelContext, *args: Any, name: str) -> Any:
    """Run the body here, op by op."""
    return _one(ctx, ctx.run_region("body", args))


@kernel("func.launch", role="host")
@kernel("func.call", "func.launch", table=launch_kernels)
def launch(ctx: KernelContext, *args: Any, name: str) -> Any:
    """Have the parties run the body, whole and optimized."""
    step = ctx.step
    if step.cache is None:
        step.cache = run_passes(Program(name, ctx.interpreter.mask, step.op.regions["body"]))
    return _one(ctx, ctx.interpreter.submit(step.cache, args))


def _one(ctx: KernelContext, outs: Sequence[Any]) -> Any:
    return outs[0] if len(ctx.step.outs) == 1 else outs

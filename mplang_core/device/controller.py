"""Ops of the controller, which run in the process that traces the program."""

from __future__ import annotations

from typing import Any, cast

from mplang_core.edsl import MPContext, MPObject, TraceContext, TraceVar
from mplang_core.edsl.literals import is_literal, literal_type, read_args
from mplang_core.errors import TraceError
from mplang_core.feop import fe_materialize, is_feop, unflatten
from mplang_core.feop.decorator import meta_of
from mplang_core.feop.program import Operand
from mplang_core.ir.source_line import at
from mplang_core.runtime import KernelContext, host_kernels
from mplang_core.runtime.interpreter import execute
from mplang_core.runtime.plan import make_plan


def is_of_controller(fn: Any) -> bool:
    """Return whether a callable is a feop with ``execution_model="in_controller"``."""
    return is_feop(fn) and meta_of(fn).execution_model == "in_controller"


def run_here(ctx: MPContext, op: Any, args: Any, kwargs: Any) -> Any:
    """Run an op of the controller at once, on literals.

    Args:
        ctx: the current context.
        op: the feop; its kernel has ``role="host"``.
        args: nests of numbers, arrays, and what other ops of the controller returned.
        kwargs: its attributes.

    Returns:
        The result as plain data, a literal for other ops.

    Raises:
        TraceError: an argument is at the parties.
        KernelError: there is no kernel of the controller, or it failed.
    """
    leaves, spec = read_args(args, {})
    for leaf in leaves:
        if isinstance(leaf, MPObject):
            raise TraceError(
                f"{at()}{meta_of(op).name} runs at the controller, which does not have {leaf!s}; "
                "give it literals, or what mp.fetch returned"
            )
    operands = [Operand(literal_type(leaf), leaf) if is_literal(leaf) else leaf for leaf in leaves]
    program = fe_materialize(op, *unflatten(spec, operands)[0], **kwargs)
    body = TraceContext(ctx.cluster_spec, local=True)
    params = [body.parameter(kind) for kind in program.pfunc.ins_info]
    outs = body.emit(program.pfunc.fn_type, params, program.pfunc.attrs)
    body.graph.outputs = [cast(TraceVar, out).value for out in outs]
    plan, here = make_plan(body.graph, host_kernels), KernelContext(ctx, "controller")
    given = [ctx.read_literal(operand.value) for operand in program.inputs]
    return unflatten(program.out_tree, execute(plan, given, here))

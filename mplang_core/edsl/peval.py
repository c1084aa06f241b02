"""Application of ops at parties, and the run mask (*rmask*)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any, cast

from mplang_core.edsl.context import MPContext, MPObject, find_ctx, with_ctx
from mplang_core.edsl.literals import constant, lift_literals, read_mask
from mplang_core.edsl.tracer import TraceContext, TraceVar
from mplang_core.errors import TraceError
from mplang_core.feop import FeProgram, PFunction, fe_materialize, flatten, is_feop, unflatten
from mplang_core.feop.decorator import meta_of
from mplang_core.ir import Graph
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.tracebacks import of_user


def peval(
    pfunc: PFunction, args: Sequence[MPObject], rmask: Mask | int | Sequence[int] | None = None
) -> list[MPObject]:
    """Apply an op to values at parties.

    ======================  ========  ===============================================
    pmasks of the args      rmask     parties that run it and hold the results
    ======================  ========  ===============================================
    all known               ``None``  their intersection
    all known               given     the rmask, a subset of the intersection
    one is ``None``         given     the rmask; checked when it runs
    one is ``None``         ``None``  holders of all args; known when it runs
    ======================  ========  ===============================================

    Without args, all parties run it, or those of the rmask.

    Args:
        pfunc: the op; ``ins_info`` are the base types of the args.
        args: the operands.
        rmask: the parties that run it, a mask or ranks.

    Returns:
        One value per result of the op, of the base types ``outs_info``.

    Raises:
        TraceError: the args have other types, no party holds all of them, or a party of the
            rmask does not.
    """
    if not isinstance(pfunc, PFunction):
        raise TraceError(
            f"{at()}peval takes the op of a program, as mp.fe_materialize(fn, x).pfunc, got a "
            f"{type(pfunc).__name__}; mp.invoke(fn, x) compiles and applies a function"
        )
    if isinstance(args, MPObject) or not all(isinstance(arg, MPObject) for arg in args):
        raise TraceError(f"{at()}peval takes a list of multi-party values, got {args!r}")
    ctx = find_ctx(args)
    given = [ctx.adopt(arg) for arg in args]
    found = tuple(arg.base_type for arg in given)
    if found != pfunc.ins_info:
        raise TraceError(
            f"{at()}{pfunc.fn_type} expects ({_list(pfunc.ins_info)}), got ({_list(found)})",
            code="T005",
        )
    if ctx.is_local:
        return ctx.emit(pfunc.fn_type, given, pfunc.attrs, pfunc.regions)
    body = TraceContext(ctx.cluster_spec, ctx, local=True)
    params = [body.parameter(kind) for kind in found]
    with with_ctx(body):
        outs = body.emit(pfunc.fn_type, params, pfunc.attrs, pfunc.regions)
    body.graph.outputs = [cast(TraceVar, out).value for out in outs]
    return emit_at(ctx, body.graph, given, None if rmask is None else read_mask(rmask))


def emit_at(
    ctx: MPContext, body: Graph, args: Sequence[MPObject], rmask: Mask | None
) -> list[MPObject]:
    """Emit a ``pcall`` of a body by the table of :func:`peval`."""
    masks = [arg.pmask for arg in args]
    known = [mask for mask in masks if mask is not None]
    if rmask is None and len(known) < len(masks):
        return ctx.emit("simp.pcall_dynamic", args, {}, {"do": body})
    if rmask is None:
        rmask = reduce(and_, known, ctx.mask)
        if not rmask:
            held = ", ".join(str(arg.type) for arg in args)
            raise TraceError(f"{at()}no party holds all of the args: {held}")
    return ctx.emit("simp.pcall_static", args, {"parties": rmask}, {"do": body})


@of_user
def invoke(
    fn: Callable[..., Any],
    *args: Any,
    rmask: Mask | int | Sequence[int] | None = None,
    **kwargs: Any,
) -> Any:
    """Apply a feop or a Python function of plain values at the holders of the args.

    For values on devices this is ``mp.device()(fn)(...)``; for others see :func:`peval`.

    Args:
        fn: a feop; a program; or a function, which an installed frontend compiles (JAX for arrays).
        *args: nests of values and literals. An array becomes a constant, a Python number
            is compiled in.
        rmask: the parties that run it; see :func:`peval`.
        **kwargs: attributes of the feop, or literals for the function.

    Returns:
        The result of the function; its leaves are multi-party values. An op of the controller
        runs at once, and returns plain data.

    Raises:
        FeCapabilityError: no installed frontend compiles the function.
        TraceError: see :func:`peval`.
    """
    leaves = flatten(args)[0]
    ctx = find_ctx(leaves)
    placed = any(isinstance(leaf, MPObject) and leaf.device is not None for leaf in leaves)
    at_controller = is_feop(fn) and meta_of(fn).execution_model == "in_controller"
    if (rmask is None and placed) or at_controller:
        with with_ctx(ctx):
            return ctx.cluster_spec.apply(fn, *args, **kwargs)
    mask = None if rmask is None else read_mask(rmask)
    args = lift_literals(ctx, args, mask)
    with with_ctx(ctx):
        program = fe_materialize(fn, *args, frontends=ctx.cluster_spec.frontends, **kwargs)
        return mark_uniform(ctx, fn, program.inputs, run_program(program, mask))


def mark_uniform(ctx: MPContext, fn: Any, inputs: Sequence[Any], result: Any) -> Any:
    """Return a result, uniform if a plain function made it from uniform operands.

    Ops are excluded: they may be random, or read data of their party.
    """
    if is_feop(fn) or isinstance(fn, FeProgram) or is_function(fn) or ctx.is_local:
        return result
    leaves, spec = flatten(result)
    same = all(obj.uniform for obj in inputs)
    return unflatten(spec, [ctx.place(leaf, leaf.device, same) for leaf in leaves])


def run_program(program: FeProgram, rmask: Mask | None = None) -> Any:
    """Apply the program of a feop to its inputs.

    Args:
        program: the program; its ``inputs`` are multi-party values.
        rmask: the parties that run it; see :func:`peval`.

    Returns:
        The results, nested by ``program.out_tree``.

    Raises:
        TraceError: see :func:`peval`.
    """
    consts = [constant(array, parties=rmask) for array in program.consts]
    outs = peval(program.pfunc, [*program.inputs, *consts], rmask)
    return unflatten(program.out_tree, outs)


def is_function(fn: object) -> bool:
    """Return whether a callable is a function of multi-party values, declared as such."""
    return bool(getattr(fn, "__mplang_function__", False))


def _list(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types))

"""Decorators and application of functions of multi-party values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mplang_core.edsl.context import MPContext, MPObject, find_ctx
from mplang_core.edsl.interp import InterpContext, InterpVar
from mplang_core.edsl.literals import constant, is_literal, literal_type, read_args
from mplang_core.edsl.trace_cache import trace_once
from mplang_core.edsl.tracer import TraceContext, TracedFunction, trace
from mplang_core.errors import TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.ir.source_line import at
from mplang_core.types import BaseType, MPType

P = ParamSpec("P")
R = TypeVar("R")


def function(fn: Callable[P, R]) -> Callable[P, R]:
    """Declare a function of multi-party values that is inlined at each call.

    Called in a trace, its body becomes part of that program. Called in the context of an
    interpreter, it is traced and run. The Python code runs at each call.

    Args:
        fn: the function.

    Returns:
        The function with the same signature. It takes nests of values and literals.

    Example:
        >>> import mplang_core as mp
        >>> swap = mp.function(lambda x: mp.pshfl_s(x, [0, 1], [1, 0]))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, swap, 7))
        [array(7), array(7)]
    """
    return _traced(fn)


def builtin_function(fn: Callable[P, R]) -> Callable[P, R]:
    """Declare a function of multi-party values that becomes one op, ``func.call``.

    Like that of ``jax.jit``, its Python code runs once per program and signature, and again
    after one of its closure variables or globals was bound to another object.

    Args:
        fn: the function.

    Returns:
        The function with the same signature; see :func:`function`.

    Example:
        >>> import mplang_core as mp
        >>> same = mp.builtin_function(lambda x: x)
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), lambda x: same(x), 7)
        >>> [op.opcode for op in traced.program.graph.ops]
        ['func.call']
    """
    return _traced(fn, "func.call")


def launch(fn: Callable[P, R]) -> Callable[P, R]:
    """Declare a function of multi-party values that becomes one op, ``func.launch``.

    The host submits it as a whole in both modes: one job per party.

    Args:
        fn: the function.

    Returns:
        The function with the same signature; traced as by :func:`builtin_function`.

    Example:
        >>> import mplang_core as mp
        >>> swap = mp.launch(lambda x: mp.pshfl_s(mp.pshfl_s(x, [0, 1], [1, 0]), [0, 1], [1, 0]))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.with_ctx(sim):
        ...     mp.fetch(sim, swap(mp.constant(7)))  # one job for each party
        [array(7), array(7)]
    """
    return _traced(fn, "func.launch")


def _traced(fn: Callable[P, R], opcode: str | None = None) -> Callable[P, R]:
    tracing = trace_once if opcode else _trace_anew

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        ctx = find_ctx(flatten((args, kwargs))[0])
        if isinstance(ctx, InterpContext):
            root = TraceContext(ctx.cluster_spec, ctx)
            body = wrapped if opcode == "func.launch" else fn
            return apply(ctx, tracing(root, body, args, kwargs), *args, **kwargs)  # type: ignore[no-any-return]
        if opcode and isinstance(ctx, TraceContext):
            return _call(ctx, opcode, tracing(ctx, fn, args, kwargs), args, kwargs)  # type: ignore[no-any-return]
        leaves, spec = flatten((args, kwargs))
        here = [ctx.adopt(leaf) if isinstance(leaf, MPObject) else leaf for leaf in leaves]
        args_here, kwargs_here = unflatten(spec, here)
        return fn(*args_here, **kwargs_here)

    wrapped.__mplang_function__ = True  # type: ignore[attr-defined]
    return wrapped


def _trace_anew(
    ctx: TraceContext, fn: Callable[..., Any], args: Any, kwargs: Any
) -> TracedFunction:
    return trace(ctx, fn, *args, **kwargs)


def _call(ctx: TraceContext, opcode: str, tfn: TracedFunction, args: Any, kwargs: Any) -> Any:
    leaves, _ = read_args(args, kwargs)
    operands = [
        constant(leaf) if is_literal(leaf) else leaf
        for leaf, param in zip(leaves, tfn.in_leaves, strict=True)
        if isinstance(param, MPType | BaseType)
    ]
    graph = tfn.region(tfn.captures)
    outs = ctx.emit(opcode, [*operands, *tfn.captures], {"name": tfn.name}, {"body": graph})
    return unflatten(tfn.out_struct, place_results(ctx, outs, tfn))


def place_results(ctx: MPContext, outs: list[MPObject], tfn: TracedFunction) -> list[MPObject]:
    """Return the results of a traced function with their devices and uniformity."""
    marks = zip(outs, tfn.out_devices, tfn.out_uniform, strict=True)
    return [ctx.place(out, device, uniform) for out, device, uniform in marks]


def apply(ctx: InterpContext, tfn: TracedFunction, *args: Any, **kwargs: Any) -> Any:
    """Run a traced function in an interpreter.

    Args:
        ctx: the interpreter, such as a host.
        tfn: the function.
        *args: values of that interpreter, or literals, with the structure and the types that
            the function was traced for.
        **kwargs: the same by keyword.

    Returns:
        The result of the function; its leaves are values of the interpreter.

    Raises:
        TraceError: the arguments have another structure or other types.
    """
    leaves, struct = read_args(args, kwargs)
    if struct != tfn.in_struct:
        raise TraceError(
            f"{at()}{tfn.name} was traced for arguments nested as {tfn.in_struct}, got {struct}"
        )
    inputs = []
    for i, (leaf, expected) in enumerate(zip(leaves, tfn.in_leaves, strict=True)):
        if isinstance(expected, MPType):
            inputs.append(_argument(ctx, tfn, i, leaf, expected))
        elif not _is_same(leaf, expected):
            raise TraceError(
                f"{at()}argument {i} of {tfn.name} is compiled in as {expected!r}, got {leaf!r}"
            )
    for obj in tfn.captures:
        inputs.append(_value(ctx, obj))
    results = ctx.evaluate(tfn.program, inputs)
    outs: list[MPObject] = [
        InterpVar(ctx, out.type, result)  # type: ignore[arg-type]
        for out, result in zip(tfn.out_vars, results, strict=True)
    ]
    return unflatten(tfn.out_struct, place_results(ctx, outs, tfn))


def _argument(ctx: InterpContext, tfn: TracedFunction, i: int, leaf: Any, expected: MPType) -> Any:
    found: Any
    if isinstance(leaf, MPObject):
        found = leaf.type
    elif is_literal(leaf):
        found = MPType(literal_type(leaf), ctx.mask)
    else:
        found = type(leaf).__name__
    if found != expected:
        raise TraceError(
            f"{at()}argument {i} of {tfn.name} was traced as {expected}, got {found}; "
            "compile it again for other types"
        )
    return _value(ctx, leaf) if isinstance(leaf, MPObject) else ctx.lift(leaf)


def _is_same(leaf: Any, expected: Any) -> bool:
    """Return whether an argument equals the literal that was compiled in."""
    if isinstance(leaf, MPObject):  # == would run an op
        return False
    try:
        return leaf is expected or bool(leaf == expected)
    except (TypeError, ValueError):  # an array has no truth value
        return False


def _value(ctx: InterpContext, obj: MPObject) -> Any:
    var = ctx.adopt(obj)
    assert isinstance(var, InterpVar)
    return var.value

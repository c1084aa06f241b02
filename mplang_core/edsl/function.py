"""Decorators and application of functions of multi-party values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mplang_core.edsl.context import MPObject, find_ctx
from mplang_core.edsl.interp import InterpContext
from mplang_core.edsl.trace_cache import trace_once
from mplang_core.edsl.traced_function import apply, call_op
from mplang_core.edsl.tracer import TraceContext, trace
from mplang_core.feop import flatten, unflatten

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
    after one of its closure variables or globals was bound to another object. Called on a host, it
    runs again at each call if it reads what may have changed since: an array, a list, a dict, an
    object with attributes.

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
    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        ctx = find_ctx(flatten((args, kwargs))[0])
        if isinstance(ctx, InterpContext):
            root = TraceContext(ctx.cluster_spec, ctx)
            body = wrapped if opcode == "func.launch" else fn
            if opcode:
                tfn = trace_once(root, body, args, kwargs, fn)
            else:
                tfn = trace(root, fn, *args, **kwargs)
            return apply(ctx, tfn, *args, **kwargs)  # type: ignore[no-any-return]
        if opcode and isinstance(ctx, TraceContext):
            return call_op(ctx, opcode, trace_once(ctx, fn, args, kwargs), args, kwargs)  # type: ignore[no-any-return]
        leaves, spec = flatten((args, kwargs))
        here = [ctx.adopt(leaf) if isinstance(leaf, MPObject) else leaf for leaf in leaves]
        args_here, kwargs_here = unflatten(spec, here)
        return fn(*args_here, **kwargs_here)

    wrapped.__mplang_function__ = True  # type: ignore[attr-defined]
    return wrapped

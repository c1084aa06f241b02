"""Control flow that all parties take together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import optree

from mplang_core.edsl.context import MPContext, MPObject, find_ctx
from mplang_core.edsl.peval import constant
from mplang_core.edsl.tracer import TraceContext, TracedFunction, is_literal, read_args, trace
from mplang_core.errors import TraceError
from mplang_core.feop.program import PyTreeDef, flatten, unflatten
from mplang_core.ir.source import at

__all__ = ["uniform_cond", "while_loop"]

T = TypeVar("T")


def uniform_cond(
    pred: Any,
    then_fn: Callable[..., T],
    else_fn: Callable[..., T],
    *args: Any,
    verify_uniform: bool = True,
) -> T:
    """Run one of two functions, the same one at all parties.

    Args:
        pred: a bool scalar that every party of the trace holds.
        then_fn: run where it is true.
        else_fn: run where it is false. Both give the same nest of the same types and masks,
            on the same devices. They may use values from around.
        *args: arguments for either.
        verify_uniform: whether the parties compare their predicates before they branch.

    Raises:
        TraceError: the predicate's mask is not the trace's, or the branches differ.
        RunError: the parties disagree on the predicate (when it runs).

    Example:
        >>> import mplang_core as mp
        >>> def program(flag):
        ...     return mp.uniform_cond(flag, lambda: mp.constant(1), lambda: mp.constant(2))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     print(mp.fetch(sim, mp.evaluate(sim, program, True)))
        [array(1), array(1)]
    """
    ctx = find_ctx([pred, *flatten(args)[0]])
    pred, args = _lift(ctx, (pred if isinstance(pred, MPObject) else constant(ctx, pred), args))
    scope = _scope(ctx)
    then_tfn, else_tfn = trace(scope, then_fn, *args), trace(scope, else_fn, *args)
    _check_branches(then_tfn, else_tfn)
    captures = _union(then_tfn.captures, else_tfn.captures)
    operands = [pred, *flatten(args)[0], *captures]
    regions = {"then": then_tfn.region(captures), "else": else_tfn.region(captures)}
    outs = ctx.emit("simp.uniform_cond", operands, {"verify_uniform": verify_uniform}, regions)
    same = [a and b for a, b in zip(then_tfn.out_uniform, else_tfn.out_uniform, strict=True)]
    return cast(T, _place(ctx, outs, then_tfn, same))


def while_loop(
    cond_fn: Callable[[T], Any],
    body_fn: Callable[[T], T],
    init: T,
    *,
    verify_uniform: bool = True,
) -> T:
    """Run a function again and again, the same number of times at all parties.

    Args:
        cond_fn: from the state to a bool scalar that every party of the trace holds.
        body_fn: from the state to the next, of the same nest, types, masks and devices.
            Both may use values from around.
        init: the state to begin with; numbers and arrays become constants.
        verify_uniform: whether the parties compare their predicates in each turn.

    Returns:
        The first state for which the condition is false.

    Raises:
        TraceError: the predicate's mask is not the trace's, or the body changes a type.
        RunError: the parties disagree on the predicate (when it runs).

    Example:
        >>> import mplang_core as mp
        >>> def program(n):
        ...     def step(state):
        ...         i, total = state
        ...         return i + 1, total + i
        ...     return mp.while_loop(lambda state: state[0] < n, step, (0, 0))[1]
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     print(mp.fetch(sim, mp.evaluate(sim, program, 5)))
        [array(10), array(10)]
    """
    ctx = find_ctx(flatten(init)[0])
    state = _lift(ctx, init)
    scope = _scope(ctx)
    state, body_tfn = _trace_body(scope, body_fn, state)
    cond_tfn = trace(scope, cond_fn, state)
    if len(cond_tfn.out_vars) != 1:
        raise TraceError(
            f"{at()}the condition of a loop gives one value, got {cond_tfn.out_struct}"
        )
    leaves, _ = flatten(state)
    captures = _union(cond_tfn.captures, body_tfn.captures)
    outs = ctx.emit(
        "simp.while_loop",
        [*leaves, *captures],
        {"verify_uniform": verify_uniform},
        {"cond": cond_tfn.region(captures), "body": body_tfn.region(captures)},
    )
    return cast(T, _place(ctx, outs, body_tfn, [leaf.uniform for leaf in leaves]))


def _trace_body(
    scope: TraceContext, body_fn: Callable[[Any], Any], state: Any
) -> tuple[Any, TracedFunction]:
    """Trace the body, again where it makes a value differ between parties that did not."""
    while True:
        tfn = trace(scope, body_fn, state)
        leaves, spec = flatten(state)
        _check_state(leaves, spec, tfn)
        after = [a.uniform and b for a, b in zip(leaves, tfn.out_uniform, strict=True)]
        if after == [leaf.uniform for leaf in leaves]:
            return state, tfn
        ctx = leaves[0].ctx
        marked = [ctx.place(x, x.device, same) for x, same in zip(leaves, after, strict=True)]
        state = unflatten(spec, marked)


def _scope(ctx: MPContext) -> TraceContext:
    return ctx if isinstance(ctx, TraceContext) else TraceContext(ctx.cluster_spec, ctx)


def _place(
    ctx: MPContext, outs: Sequence[MPObject], tfn: TracedFunction, uniform: Sequence[bool]
) -> Any:
    marks = zip(outs, tfn.out_devices, uniform, strict=True)
    return unflatten(tfn.out_struct, [ctx.place(*mark) for mark in marks])


def _lift(ctx: MPContext, tree: Any) -> Any:
    leaves, spec = read_args((tree,), {})
    lifted = [constant(ctx, leaf) if is_literal(leaf) else leaf for leaf in leaves]
    for leaf in lifted:
        if not isinstance(leaf, MPObject):
            raise TraceError(
                f"{at()}control flow carries multi-party values and numbers, got a "
                f"{type(leaf).__name__}; use it from around instead"
            )
    ((lifted_tree,), _) = unflatten(spec, [ctx.adopt(leaf) for leaf in lifted])
    return lifted_tree


def _union(first: Sequence[MPObject], second: Sequence[MPObject]) -> list[MPObject]:
    return list({id(obj): obj for obj in (*first, *second)}.values())


def _describe(type: Any, device: Any) -> str:
    return f"{type}" + (f" on {device.name}" if device is not None else "")


def _check_branches(then_tfn: TracedFunction, else_tfn: TracedFunction) -> None:
    if then_tfn.out_struct != else_tfn.out_struct:
        raise TraceError(
            f"{at()}the branches return different nests: then {then_tfn.out_struct}, "
            f"else {else_tfn.out_struct}"
        )
    paths = optree.treespec_accessors(then_tfn.out_struct)
    for path, a, b, dev_a, dev_b in zip(
        paths,
        then_tfn.out_vars,
        else_tfn.out_vars,
        then_tfn.out_devices,
        else_tfn.out_devices,
        strict=True,
    ):
        if (a.type, dev_a) != (b.type, dev_b):
            raise TraceError(
                f"{at()}the branches differ in {path.codify('result')}: then gives "
                f"{_describe(a.type, dev_a)}, else gives {_describe(b.type, dev_b)}"
            )


def _check_state(leaves: list[MPObject], struct: PyTreeDef, body: TracedFunction) -> None:
    if body.out_struct != struct:
        raise TraceError(
            f"{at()}the body of a loop returns the nest of its state: expected {struct}, "
            f"got {body.out_struct}"
        )
    paths = optree.treespec_accessors(struct)
    for path, leaf, out, device in zip(paths, leaves, body.out_vars, body.out_devices, strict=True):
        if (leaf.type, leaf.device) != (out.type, device):
            raise TraceError(
                f"{at()}the body of a loop changes {path.codify('state')}: it comes in as "
                f"{_describe(leaf.type, leaf.device)}, and goes out as "
                f"{_describe(out.type, device)}; begin with a value of the latter type"
            )

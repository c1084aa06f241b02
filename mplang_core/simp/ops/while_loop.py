"""Op ``simp.while_loop``: a loop that all parties run together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from mplang_core.edsl import MPObject, TraceContext, TracedFunction, find_ctx, trace
from mplang_core.errors import TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.feop.program import PyTreeDef
from mplang_core.ir import AnyType, Level, Operation
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import ControlFlow, Loop
from mplang_core.simp.ops import regions
from mplang_core.simp.ops.common import NamedWithoutDialect, declare, list_types, single

T = TypeVar("T")


def while_loop(
    cond_fn: Callable[[T], Any],
    body_fn: Callable[[T], T],
    init: T,
    *more: T,
    verify_uniform: bool = True,
) -> T:
    """Run a function while a condition holds, equally often at all parties.

    Args:
        cond_fn: returns for a state a bool scalar that every party of the trace holds.
        body_fn: returns for a state the next one, of the same nest, types, masks and devices.
            Both may capture values of enclosing contexts.
        init: the initial state; numbers and arrays become constants.
        *more: nothing; several values are one state, as a tuple.
        verify_uniform: whether the parties compare their predicates in each turn.

    Returns:
        The first state for which the condition is false.

    Raises:
        TraceError: there are several states, the predicate's mask is not the trace's, or the body
            changes a type.
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
    if more:
        raise TraceError(
            f"{at()}a loop has one state; put several values into a tuple: (x, y)", code="T009"
        )
    ctx = find_ctx(flatten(init)[0])
    scope = regions.scope_of(ctx)
    state, body_tfn = _trace_body(scope, body_fn, regions.lift(ctx, init))
    cond_tfn = trace(scope, cond_fn, state)
    if len(cond_tfn.out_vars) != 1:
        raise TraceError(
            f"{at()}a loop's condition gives one value, got {cond_tfn.out_struct}", code="T009"
        )
    leaves, _ = flatten(state)
    captures = regions.union(cond_tfn.captures, body_tfn.captures)
    given, attrs = [*leaves, *captures], {"verify_uniform": verify_uniform}
    bodies = {"cond": cond_tfn.region(captures), "body": body_tfn.region(captures)}
    outs = ctx.emit("simp.while_loop", given, attrs, bodies)
    return cast(T, regions.on_devices(ctx, outs, body_tfn, [leaf.uniform for leaf in leaves]))


def _trace_body(
    scope: TraceContext, body_fn: Callable[[Any], Any], state: Any
) -> tuple[Any, TracedFunction]:
    """Trace the body until the uniformity of the state is stable: a body may clear it."""
    while True:
        tfn = trace(scope, body_fn, state)
        leaves, spec = flatten(state)
        _check_state(leaves, spec, tfn)
        after = [a.uniform and b for a, b in zip(leaves, tfn.out_uniform, strict=True)]
        if after == [leaf.uniform for leaf in leaves]:
            return state, tfn
        marked = [x.ctx.place(x, x.device, same) for x, same in zip(leaves, after, strict=True)]
        state = unflatten(spec, marked)


def _check_state(leaves: list[MPObject], struct: PyTreeDef, body: TracedFunction) -> None:
    if body.out_struct != struct:
        raise TraceError(
            f"{at()}the body of a loop returns the nest of its state: expected {struct}, "
            f"got {body.out_struct}",
            code="T009",
        )
    before = [(leaf.type, leaf.device) for leaf in leaves]
    for path, a, b in regions.differing("state", struct, before, regions.places_of(body)):
        raise TraceError(
            f"{at()}the body of a loop changes {path}: it comes in as {a}, and goes out as {b}; "
            "begin with a value of the latter type",
            code="T009",
        )


class _WhileLoop(ControlFlow, NamedWithoutDialect):
    def control(self, op: Operation) -> Loop:
        return Loop("cond", "body", op.attrs["verify_uniform"])


@declare(
    "simp.while_loop",
    _WhileLoop(),
    {"verify_uniform": regions.VERIFY},
    {"cond": Level.PARTY, "body": Level.PARTY},
)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """All parties loop together. Operands: the state, then what both regions capture."""
    args = [value.type for value in op.inputs]
    regions.check_taken(op, args)
    preds = [value.type for value in op.regions["cond"].outputs]
    if len(preds) != 1:
        raise TypeError(f"a condition gives one value, got ({list_types(preds)})")
    regions.check_predicate(preds[0], world)
    state = [value.type for value in op.regions["body"].outputs]
    if state != args[: len(state)]:
        raise TypeError(
            f"the body changes the state: it is ({list_types(args[: len(state)])}), "
            f"the body gives ({list_types(state)})"
        )
    return state


@kernel("simp.while_loop")
def loop(ctx: KernelContext, *args: Any, verify_uniform: bool) -> Any:
    """Run the body while the predicate, which all parties agree on, is true."""
    size = len(ctx.step.outs)
    state, captures = list(args[:size]), list(args[size:])
    turn = 0
    while True:
        (pred,) = ctx.run_region("cond", state + captures, turn)
        if not regions.agreed(ctx, pred, turn, verify_uniform):
            return single(ctx, state)
        state = ctx.run_region("body", state + captures, turn)
        turn += 1

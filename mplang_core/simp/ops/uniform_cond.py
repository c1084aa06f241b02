"""Op ``simp.uniform_cond``: a branch that all parties take together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from mplang_core.edsl import MPObject, TracedFunction, constant, find_ctx, trace
from mplang_core.errors import TraceError
from mplang_core.feop import flatten
from mplang_core.ir import AnyType, Level, Operation
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import Branch, ControlFlow
from mplang_core.simp.ops import regions
from mplang_core.simp.ops.common import NamedWithoutDialect, declare, list_types, single

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
        then_fn: runs if the predicate is true.
        else_fn: runs if it is false. Both return the same nest of the same types and masks,
            on the same devices. They may capture values of enclosing contexts.
        *args: the arguments of both functions.
        verify_uniform: whether the parties compare their predicates before they branch.

    Returns:
        The result of the function that ran.

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
    pred = pred if isinstance(pred, MPObject) else constant(ctx, pred)
    pred, args = regions.lift(ctx, (pred, args))
    scope = regions.scope_of(ctx)
    then_tfn, else_tfn = trace(scope, then_fn, *args), trace(scope, else_fn, *args)
    _check_branches(then_tfn, else_tfn)
    captures = regions.union(then_tfn.captures, else_tfn.captures)
    operands = [pred, *flatten(args)[0], *captures]
    branches = {"then": then_tfn.region(captures), "else": else_tfn.region(captures)}
    outs = ctx.emit("simp.uniform_cond", operands, {"verify_uniform": verify_uniform}, branches)
    same = [a and b for a, b in zip(then_tfn.out_uniform, else_tfn.out_uniform, strict=True)]
    return cast(T, regions.on_devices(ctx, outs, then_tfn, same))


def _check_branches(then_tfn: TracedFunction, else_tfn: TracedFunction) -> None:
    if then_tfn.out_struct != else_tfn.out_struct:
        raise TraceError(
            f"{at()}the branches return different nests: then {then_tfn.out_struct}, "
            f"else {else_tfn.out_struct}",
            code="T009",
        )
    places = regions.places_of(then_tfn), regions.places_of(else_tfn)
    for path, a, b in regions.differing("result", then_tfn.out_struct, *places):
        raise TraceError(
            f"{at()}the branches differ in {path}: then gives {a}, else gives {b}", code="T009"
        )


class _UniformCond(ControlFlow, NamedWithoutDialect):
    def control(self, op: Operation) -> Branch:
        return Branch((("then", 1), ("else", 0)), op.attrs["verify_uniform"])


@declare(
    "simp.uniform_cond",
    _UniformCond(),
    {"verify_uniform": regions.VERIFY},
    {"then": Level.PARTY, "else": Level.PARTY},
)
def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    """All parties take the same branch. Operands: predicate, then those of the branches."""
    if not op.inputs:
        raise TypeError("uniform_cond takes a predicate")
    regions.check_predicate(op.inputs[0].type, world)
    args = [value.type for value in op.inputs[1:]]
    regions.check_taken(op, args, "branch")
    results = [[value.type for value in op.regions[name].outputs] for name in ("then", "else")]
    if results[0] != results[1]:
        raise TypeError(
            f"the branches differ: then gives ({list_types(results[0])}), "
            f"else gives ({list_types(results[1])})"
        )
    return results[0]


@kernel("simp.uniform_cond")
def branch(ctx: KernelContext, pred: Any, *args: Any, verify_uniform: bool) -> Any:
    """Run the branch that all parties agree on."""
    taken = "then" if regions.agreed(ctx, pred, 0, verify_uniform) else "else"
    return single(ctx, ctx.run_region(taken, args))

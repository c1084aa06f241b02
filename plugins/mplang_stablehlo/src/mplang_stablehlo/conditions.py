"""Pass ``fold_conditions``: a turn of a loop runs its body and the next condition at once.

Imports no JAX.
"""

from __future__ import annotations

from dataclasses import replace

from mplang_passes.ext import inline, rewrite_graphs, rewrite_ops, rewrite_regions

from mplang_core import Program
from mplang_core.ext import (
    Graph,
    Loop,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    interface_of,
)
from mplang_stablehlo.interface import module_of

MAX_OPS = 32
"""Maximum number of ops of a condition, which then stands before the loop and in it."""


def fold_conditions(program: Program) -> Program:
    """Append a loop's condition, on the next state, to its body.

    The predicate is carried in the state. Ops run in the same order as before, but those of the
    body and of the condition stand in one graph, so that neighbouring modules are linked: a turn
    of a loop that stays among the parties calls the engine once. Conditions are folded if they
    have nothing but modules and literals, and if the body has modules of the same parties.

    Example:
        >>> import mplang_core as mp
        >>> def program(n):
        ...     return mp.while_loop(lambda i: i < n, lambda i: i + 1, 0)
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program, 5).program
        >>> loop = fold_conditions(traced).graph.ops[-1]
        >>> len(loop.regions["cond"].ops), len(loop.outputs)
        (0, 2)
    """
    return rewrite_graphs(program, _folded)


def _folded(graph: Graph) -> Graph:
    ops: list[Operation] = []
    for op in graph.ops:
        op, control = rewrite_regions(op, _folded), control_of(op)
        if isinstance(control, Loop) and _pays(op, control):
            op = _fold(op, control, ops)
        ops.append(op)
    return rewrite_ops(graph, ops)


def _pays(op: Operation, loop: Loop) -> bool:
    """Return whether modules of the condition are linked with such of the body."""
    condition, body = op.regions[loop.condition], op.regions[loop.body]
    calls = [each for each in condition.ops if interface_of(each, PublicLiteral) is None]
    if not calls or sum(1 for _ in condition.walk()) > MAX_OPS or not all(map(_is_module, calls)):
        return False
    return any(_is_module(each) and each.attrs == calls[0].attrs for each in body.ops)


def _is_module(op: Operation) -> bool:
    """Return whether an op has parties run modules, and nothing else."""
    control = control_of(op)
    if not isinstance(control, PartyCall) or control.parties is None:
        return False
    return all(module_of(each) is not None for each in op.regions[control.region].ops)


def _fold(op: Operation, loop: Loop, before: list[Operation]) -> Operation:
    """Return a loop that carries its predicate; the first one is evaluated before it."""
    condition, body, size = op.regions[loop.condition], op.regions[loop.body], len(op.outputs)
    (first,) = inline(condition, op.inputs, before)
    types = [first.type, *(value.type for value in op.inputs)]
    params = [Value(kind) for kind in types]
    ops: list[Operation] = []
    state = inline(body, params[1:], ops)
    (following,) = inline(condition, [*state, *params[1 + size :]], ops)
    taken = [Value(kind) for kind in types]
    return replace(
        op,
        inputs=(first, *op.inputs),
        outputs=(Value(first.type), *op.outputs),
        regions={
            loop.condition: Graph(taken, [], taken[:1]),
            loop.body: Graph(params, ops, [following, *state]),
        },
    )

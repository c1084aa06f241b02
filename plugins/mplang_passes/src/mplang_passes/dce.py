"""Dead code elimination: unused ops, results, operands and loop states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace

from mplang_core import Program
from mplang_core.ext import (
    Branch,
    Call,
    Effects,
    Graph,
    Loop,
    Operation,
    PartyCall,
    Value,
    control_of,
)
from mplang_passes.effects import effects_of
from mplang_passes.rewrite import rewrite_graphs, rewrite_ops, rewrite_regions


def eliminate_dead_code(program: Program) -> Program:
    """Return the program without unused ops, results, operands and loop states.

    Ops with unknown effects stay. A shuffle is removed at all of its parties or at none. The
    inputs and outputs of the program stay. Idempotent.

    Example:
        >>> from mplang_core import parse
        >>> print(eliminate_dead_code(parse('''program "p" on {0, 1} (%0: i64[]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1}
        ...   return %0
        ... }''')))
        program "p" on {0, 1} (%0: i64[]@{0}) {
          return %0
        }
        <BLANKLINE>
    """
    return rewrite_graphs(program, _live)


def _live(graph: Graph, keep: Iterable[int] | None = None) -> Graph:
    """Return the graph without ops that some of its results, all by default, do not need."""
    outputs = graph.outputs if keep is None else [graph.outputs[i] for i in keep]
    used, ops = set(outputs), list[Operation]()
    for op in reversed(graph.ops):
        if not used.isdisjoint(op.outputs) or effects_of(op) is Effects.ANY:
            op = _trim(op, used)
            used.update(op.inputs)
            ops.append(op)
    return rewrite_ops(graph, ops[::-1], outputs)


def _needed(graph: Graph) -> set[int]:
    """Return the positions of the inputs that a live graph uses."""
    used = {value for op in graph.ops for value in op.inputs}.union(graph.outputs)
    return {i for i, value in enumerate(graph.inputs) if value in used}


def _used(op: Operation, used: Set[Value]) -> list[int]:
    return [i for i, value in enumerate(op.outputs) if value in used]


def _trim(op: Operation, used: Set[Value]) -> Operation:
    """Return an op without unused results, operands and region ops if it has control flow."""
    control = control_of(op)
    match control:
        case Call():
            return _trim_call(op, used)
        case PartyCall(parties=None):
            return _trim_dynamic(op, used, control.region)
        case PartyCall():
            return _trim_call(op, used)
        case Branch():
            return _trim_call(op, used, extra=1)
        case Loop():
            return _trim_loop(op, used, control)
    return rewrite_regions(op, _live)


def _narrow(
    op: Operation,
    outputs: Collection[int],
    operands: Collection[int],
    regions: Mapping[str, Graph],
    extra: int = 0,
) -> Operation:
    """Return the op with some of its results, and the operands that its regions take."""
    everything = len(outputs) == len(op.outputs) and len(operands) == len(op.inputs) - extra
    if everything and regions == op.regions:
        return op
    return replace(
        op,
        inputs=op.inputs[:extra] + tuple(op.inputs[extra + i] for i in operands),
        outputs=tuple(op.outputs[i] for i in outputs),
        regions={
            name: Graph([region.inputs[i] for i in operands], region.ops, region.outputs)
            for name, region in regions.items()
        },
    )


def _trim_call(op: Operation, used: Set[Value], extra: int = 0) -> Operation:
    """Return a trimmed op whose regions take its operands after ``extra`` ones."""
    outputs = _used(op, used)
    regions = {name: _live(region, outputs) for name, region in op.regions.items()}
    operands = sorted(set[int]().union(*map(_needed, regions.values())))
    return _narrow(op, outputs, operands, regions, extra)


def _trim_dynamic(op: Operation, used: Set[Value], region: str) -> Operation:
    """Return a trimmed dynamic pcall; operands stay, since they determine who runs it."""
    outputs = _used(op, used)
    body = _live(op.regions[region], outputs)
    return _narrow(op, outputs, range(len(op.inputs)), {region: body})


def _trim_loop(op: Operation, used: Set[Value], loop: Loop) -> Operation:
    """Return a trimmed loop.

    A state is needed if its result is, or if the condition or a needed state uses it.
    """
    size, states = len(op.outputs), set(_used(op, used))
    cond = _live(op.regions[loop.condition])
    while True:
        body = _live(op.regions[loop.body], sorted(states))
        needed = _needed(cond) | _needed(body) | states
        wider = {i for i in needed if i < size}
        if wider == states:
            regions = {loop.condition: cond, loop.body: body}
            return _narrow(op, sorted(states), sorted(needed), regions)
        states = wider

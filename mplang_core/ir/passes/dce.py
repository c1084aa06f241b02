"""Leaves out what nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace

from mplang_core.ir.graph import Graph, Operation, Program, Value
from mplang_core.ir.opdef import Effects
from mplang_core.ir.passes.effects import effects_of
from mplang_core.ir.passes.rewrite import rewrite_graphs, rewrite_regions
from mplang_core.ir.place import place_of

__all__ = ["eliminate_dead_code"]


def eliminate_dead_code(program: Program) -> Program:
    """Leave out ops whose results are not used, and results, operands and states likewise.

    Ops of which nothing is known stay. A shuffle goes as a whole, at all of its parties.
    Inputs and outputs of the program stay. Idempotent.

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
    """Return the graph with only what some of its results need, all by default."""
    outputs = graph.outputs if keep is None else [graph.outputs[i] for i in keep]
    used, ops = set(outputs), list[Operation]()
    for op in reversed(graph.ops):
        if effects_of(op) is Effects.ANY or not used.isdisjoint(op.outputs):
            trim = _TRIM.get(op.opcode, _trim_regions) if place_of(op) is None else _trim_regions
            op = trim(op, used)
            used.update(op.inputs)
            ops.append(op)
    return Graph(graph.inputs, ops[::-1], outputs)


def _needed(graph: Graph) -> set[int]:
    """Return the positions of the inputs that a live graph uses."""
    used = {value for op in graph.ops for value in op.inputs}.union(graph.outputs)
    return {i for i, value in enumerate(graph.inputs) if value in used}


def _used(op: Operation, used: Set[Value]) -> list[int]:
    return [i for i, value in enumerate(op.outputs) if value in used]


def _trim_regions(op: Operation, used: Set[Value]) -> Operation:
    """Of an op that is not known better only the insides of the regions are trimmed."""
    return rewrite_regions(op, _live)


def _narrow(
    op: Operation,
    outputs: Collection[int],
    operands: Collection[int],
    regions: Mapping[str, Graph],
    extra: int = 0,
) -> Operation:
    """Return the op with some of its results, and the operands that its regions take."""
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
    """Regions take the operands (after some extra ones), and give the results."""
    outputs = _used(op, used)
    regions = {name: _live(region, outputs) for name, region in op.regions.items()}
    operands = sorted(set[int]().union(*map(_needed, regions.values())))
    return _narrow(op, outputs, operands, regions, extra)


def _trim_cond(op: Operation, used: Set[Value]) -> Operation:
    return _trim_call(op, used, extra=1)


def _trim_dynamic(op: Operation, used: Set[Value]) -> Operation:
    """Operands stay: they decide who runs it."""
    outputs = _used(op, used)
    body = _live(op.regions["do"], outputs)
    return _narrow(op, outputs, range(len(op.inputs)), {"do": body})


def _trim_loop(op: Operation, used: Set[Value]) -> Operation:
    """A state is needed if its last value is, or if the condition or a needed state uses it."""
    size, states = len(op.outputs), set(_used(op, used))
    cond = _live(op.regions["cond"])
    while True:
        body = _live(op.regions["body"], sorted(states))
        needed = _needed(cond) | _needed(body) | states
        wider = {i for i in needed if i < size}
        if wider == states:
            regions = {"cond": cond, "body": body}
            return _narrow(op, sorted(states), sorted(needed), regions)
        states = wider


_TRIM: Mapping[str, Callable[[Operation, Set[Value]], Operation]] = {
    "func.call": _trim_call,
    "func.launch": _trim_call,
    "simp.pcall_dynamic": _trim_dynamic,
    "simp.pcall_static": _trim_call,
    "simp.uniform_cond": _trim_cond,
    "simp.while_loop": _trim_loop,
}

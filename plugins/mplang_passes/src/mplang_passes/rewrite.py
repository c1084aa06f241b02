"""Rewriting of graphs: substitution and inlining; programs share unchanged ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mplang_core import Program
from mplang_core.ext import Graph, Operation, Value

Env = dict[Value, Value]
"""Substitution of values; others stay."""


def rewrite_graphs(program: Program, rewrite: Callable[[Graph], Graph]) -> Program:
    """Return the program with its graph rewritten; the same one if its graph stays."""
    graph = rewrite(program.graph)
    if graph is program.graph:
        return program
    return Program(program.name, program.mask, graph)


def rewrite_ops(
    graph: Graph, ops: Sequence[Operation], outputs: Sequence[Value] | None = None
) -> Graph:
    """Return the graph with other ops and outputs; the same one if they are the same objects."""
    outs = graph.outputs if outputs is None else list(outputs)
    if ops == graph.ops and outs == graph.outputs:
        return graph
    return Graph(graph.inputs, list(ops), outs)


def rewrite_regions(op: Operation, rewrite: Callable[[Graph], Graph]) -> Operation:
    """Return the op with its regions rewritten; the same one if they stay."""
    if not op.regions:
        return op
    regions = {name: rewrite(graph) for name, graph in op.regions.items()}
    return op if regions == op.regions else replace(op, regions=regions)


def lookup(env: Mapping[Value, Value], values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the substitutes of values."""
    return tuple(env.get(value, value) for value in values)


def inline(graph: Graph, args: Sequence[Value], ops: list[Operation]) -> tuple[Value, ...]:
    """Append a copy of a graph's ops, for these arguments, and return its results.

    The copy defines values of its own, as other ops may have the same graph as a region.
    """
    env: Env = dict(zip(graph.inputs, args, strict=True))
    for op in graph.ops:
        outputs = tuple(Value(value.type) for value in op.outputs)
        ops.append(replace(op, inputs=lookup(env, op.inputs), outputs=outputs))
        env.update(zip(op.outputs, outputs, strict=True))
    return lookup(env, graph.outputs)

"""Does once what is done twice."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from mplang_core.ir.attrs import AttrValue
from mplang_core.ir.graph import Graph, Operation, Program, Value
from mplang_core.ir.opdef import Effects
from mplang_core.ir.passes.effects import effects_of
from mplang_core.ir.passes.rewrite import Env, lookup, rewire, rewrite_graphs, rewrite_regions
from mplang_core.types import TensorType

__all__ = ["merge_duplicates"]


def merge_duplicates(program: Program) -> Program:
    """Have ops that are the same, regions included, done once.

    Only ops whose results follow from operands and attributes are merged: two fresh keys stay
    two. Regions are closed, so each has its own duplicates. Idempotent.

    Example:
        >>> from mplang_core import parse
        >>> print(merge_duplicates(parse('''program "p" on {0, 1} (%0: i64[]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1}
        ...   %2 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1}
        ...   return %1, %2
        ... }''')))
        program "p" on {0, 1} (%0: i64[]@{0}) {
          %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1}
          return %1, %1
        }
        <BLANKLINE>
    """
    return rewrite_graphs(program, _merge)


def _merge(graph: Graph) -> Graph:
    first: dict[Hashable, Operation] = {}
    env: Env = {}
    ops = []
    for op in graph.ops:
        op = rewire(rewrite_regions(op, _merge), env)
        twin = op
        if effects_of(op) is Effects.NONE:
            twin = first.setdefault(_op_key(op, op.inputs), op)
        if twin is op:
            ops.append(op)
        env.update(zip(op.outputs, twin.outputs, strict=True))
    return Graph(graph.inputs, ops, list(lookup(env, graph.outputs)))


def _op_key(op: Operation, operands: Hashable) -> Hashable:
    """Return what is the same for two ops that do the same to the same operands."""
    attrs = tuple((name, _attr_key(op.attrs[name])) for name in sorted(op.attrs))
    regions = tuple((name, _graph_key(graph)) for name, graph in op.regions.items())
    return op.opcode, operands, attrs, regions


def _graph_key(graph: Graph) -> Hashable:
    numbers: dict[Value, int] = {}
    for value in graph.inputs:
        numbers[value] = len(numbers)
    ops = []
    for op in graph.ops:
        ops.append(_op_key(op, tuple(numbers[value] for value in op.inputs)))
        for value in op.outputs:
            numbers[value] = len(numbers)
    types = tuple(value.type for value in graph.inputs)
    return types, tuple(ops), tuple(numbers[value] for value in graph.outputs)


def _attr_key(value: AttrValue) -> Hashable:
    """Return a key that tells apart what :func:`~mplang_core.ir.attrs.same` does."""
    match value:
        case np.ndarray():
            return TensorType.of(value), value.tobytes()
        case tuple():
            return tuple, tuple(map(_attr_key, value))
        case Mapping():
            return dict, tuple((key, _attr_key(value[key])) for key in sorted(value))
        case float():
            return float, value.hex()
    key: Hashable = value
    return type(value), key

"""The pass ``broadcast_once``: what everybody has is not sent again."""

from __future__ import annotations

from dataclasses import replace

from mplang_core import Program
from mplang_core.ext import Graph, Operation, Value


def broadcast_once(program: Program) -> Program:
    """Return the program without broadcasts of what was broadcast before.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import broadcast
        >>> def twice(x):
        ...     return broadcast(broadcast(x, root=0), root=1)
        >>> kind = mp.MPType(mp.TensorType("i64"), mp.Mask.of(0))
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), twice, kind).program
        >>> len(traced.graph.ops), len(broadcast_once(traced).graph.ops)
        (2, 1)
    """
    graph, ops = program.graph, list[Operation]()
    held, same = set[Value](), dict[Value, Value]()
    for op in graph.ops:
        op = replace(op, inputs=tuple(same.get(value, value) for value in op.inputs))
        if op.opcode == "hello.broadcast":
            if op.inputs[0] in held:
                same[op.outputs[0]] = op.inputs[0]
                continue
            held.add(op.outputs[0])
        ops.append(op)
    if not same:
        return program
    outputs = [same.get(value, value) for value in graph.outputs]
    once = Graph(graph.inputs, ops, outputs)
    return Program(program.name, program.mask, once)

"""Tables that stay at their source: those of which programs ask nothing but queries."""

from __future__ import annotations

from collections.abc import Mapping

from mplang_analysis.data_question import AsksData
from mplang_core import TableType
from mplang_core.ext import Graph, Operation, QueriesSources, Value, interface_of


def staying_reads(graph: Graph) -> Mapping[Value, Operation]:
    """Return the ops whose tables stay at their source, by the table.

    An op reads a table that asks for data and has no operands. The table stays if all its users are
    queries, and all that these take are tables that stay and are read by the same kind of op.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> staying_reads(program.graph)
        {}
    """
    reads = {op.outputs[0]: op for op in graph.ops if _reads_table(op)}
    if not reads:
        return {}
    queries: dict[Value, list[Operation]] = {}
    leaving = list(graph.outputs)
    for op in graph.ops:
        kinds = {reads[value].opcode if value in reads else "" for value in op.inputs}
        if interface_of(op, QueriesSources) is None or len(kinds) > 1 or "" in kinds:
            leaving += op.inputs
        for value in op.inputs:
            queries.setdefault(value, []).append(op)
    leaving += [value for value in reads if value not in queries]  # which nobody uses
    while leaving:
        value = leaving.pop()
        if reads.pop(value, None) is not None:
            leaving += [each for op in queries.get(value, ()) for each in op.inputs]
    return reads


def _reads_table(op: Operation) -> bool:
    return (
        not op.inputs
        and len(op.outputs) == 1
        and isinstance(op.outputs[0].type, TableType)
        and interface_of(op, AsksData) is not None
    )

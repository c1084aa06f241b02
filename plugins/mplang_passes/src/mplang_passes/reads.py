"""Reads of tables move to the queries over them, so that their sources can run these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from mplang_core import Program
from mplang_core.ext import (
    Effects,
    Graph,
    Operation,
    PartyCall,
    QueriesSources,
    Value,
    control_of,
    interface_of,
)
from mplang_passes.effects import effects_of
from mplang_passes.rewrite import inline, lookup, rewrite_graphs, rewrite_ops, rewrite_regions

Reads: TypeAlias = Mapping[Value, Operation]
"""``pcall_static``s that read a table, by the table."""


def bring_reads(program: Program) -> Program:
    """Move what reads a table into each ``pcall_static`` that only queries it.

    A read stays where anything else is done with its table, or a query has another operand, too.
    Queries of one table then read it each for itself: within a run, the party compares what they
    see. So for steps, which are runs of their own, a table that several of them query is read once.

    Example:
        >>> from mplang_core import parse
        >>> program = parse('''program "p" on {0} () {
        ...   return
        ... }''')
        >>> bring_reads(program) is program
        True
    """
    return _rewritten(program, once=False)


def _bring_single_reads(program: Program) -> Program:
    """Move what reads a table to its query, if there is one."""
    return _rewritten(program, once=True)


def _rewritten(program: Program, *, once: bool) -> Program:
    if not _has_queries(program.graph):
        return program  # as most are: it is to cost nothing
    return rewrite_graphs(program, partial(_fuse, once=once))


def _has_queries(graph: Graph) -> bool:
    graphs, known = [graph], set[str]()
    for each in graphs:
        for op in each.ops:
            if op.opcode not in known:
                if interface_of(op, QueriesSources) is not None:
                    return True
                known.add(op.opcode)
            if op.regions:
                graphs += op.regions.values()
    return False


bring_reads.for_steps = _bring_single_reads  # type: ignore[attr-defined]  # see mplang_core.ext.Pass


def _fuse(graph: Graph, *, once: bool) -> Graph:
    ops = [rewrite_regions(op, partial(_fuse, once=once)) for op in graph.ops]
    reads = {op.outputs[0]: op for op in ops if _is_read(op)}
    uses = Counter(value for op in ops for value in op.inputs)
    for value in [*graph.outputs, *(each for each, n in uses.items() if once and n > 1)]:
        reads.pop(value, None)
    while left := [value for op in ops for value in _refused(op, reads)]:
        for value in left:
            reads.pop(value, None)
    kept = [op for op in ops if not op.outputs or op.outputs[0] not in reads]
    return rewrite_ops(graph, [_taking(op, reads) for op in kept])


def _is_read(op: Operation) -> bool:
    """Return whether an op is a ``pcall_static`` that only reads a table."""
    control = control_of(op)
    if not isinstance(control, PartyCall) or control.parties is None or op.inputs:
        return False
    body = op.regions[control.region]
    return (
        len(body.ops) == 1
        and len(op.outputs) == 1
        and not body.ops[0].inputs
        and not body.ops[0].regions
        and effects_of(body.ops[0]) is Effects.NONE
    )


def _refused(op: Operation, reads: Reads) -> Iterator[Value]:
    """Yield the tables among the operands of an op that it does not only query."""
    ours = [value for value in op.inputs if value in reads]
    if not ours:
        return
    control = control_of(op)
    if not isinstance(control, PartyCall) or control.parties is None:
        yield from ours
        return
    body = op.regions[control.region]
    given = dict(zip(body.inputs, op.inputs, strict=True))
    taken = {param for param, value in given.items() if value in reads}
    queries = [each for each in body.ops if not taken.isdisjoint(each.inputs)]
    only_queried = taken.isdisjoint(body.outputs) and all(
        interface_of(each, QueriesSources) is not None and taken.issuperset(each.inputs)
        for each in queries
    )
    for value in ours:
        if not only_queried or reads[value].attrs != op.attrs:
            yield value


def _taking(op: Operation, reads: Reads) -> Operation:
    """Return an op that reads its tables itself."""
    if reads.keys().isdisjoint(op.inputs):
        return op
    (name,) = op.regions
    body = op.regions[name]
    ops: list[Operation] = []
    tables: dict[Value, Value] = {}
    for param, value in zip(body.inputs, op.inputs, strict=True):
        if value in reads:
            (table,) = inline(reads[value].regions[name], (), ops)
            tables[param] = table
    kept = [(p, v) for p, v in zip(body.inputs, op.inputs, strict=True) if p not in tables]
    ops += [replace(each, inputs=lookup(tables, each.inputs)) for each in body.ops]
    inner = Graph([param for param, _ in kept], ops, body.outputs)
    return replace(op, inputs=tuple(value for _, value in kept), regions={name: inner})

"""Questions of programs to data sets: what an engine asks its party for while it runs one.

A gate holds what an engine asks against them, by their digests: the process that runs a program may
have been taken over by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mplang_analysis.at_source import staying_reads
from mplang_analysis.data_question import AsksData, DataQuestion
from mplang_core import Mask, Program
from mplang_core.ext import Graph, Operation, PartyCall, control_of, interface_of, prepared


def data_questions(program: Program) -> Mapping[int, tuple[DataQuestion, ...]]:
    """Return what engines ask at each party while they run a program, each once.

    Args:
        program: the program, verified. What is told is of the program after the passes, which is
            what engines run.

    Returns:
        Per rank the questions; no rank that asks none.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> data_questions(program)
        {}
    """
    asked: dict[int, dict[str, DataQuestion]] = {}
    for graph, parties in _graphs(prepared(program).graph, program.mask):
        for question in _questions(graph):
            for rank in parties:
                asked.setdefault(rank, {})[question.digest] = question
    return {rank: tuple(each.values()) for rank, each in sorted(asked.items())}


def _graphs(graph: Graph, parties: Mask) -> Iterator[tuple[Graph, Mask]]:
    """Yield a graph and those of its regions, each with the parties that run it."""
    yield graph, parties
    for op in graph.ops:
        if op.regions:
            control = control_of(op)
            inner = control.parties if isinstance(control, PartyCall) else None
            for region in op.regions.values():
                yield from _graphs(region, parties if inner is None else inner)


def _questions(graph: Graph) -> Iterator[DataQuestion]:
    staying = staying_reads(graph)
    for op in graph.ops:
        declared = interface_of(op, AsksData)
        if declared is None or (op.outputs and op.outputs[0] in staying):
            continue
        if staying.keys() >= set(op.inputs):
            yield declared.question(op, [_reading(staying[value]) for value in op.inputs])


def _reading(op: Operation) -> DataQuestion:
    declared = interface_of(op, AsksData)
    assert declared is not None  # else its table would not stay
    return declared.question(op, ())

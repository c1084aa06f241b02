"""Pass ``clear_agreements``: predicates that are the same at all parties are not compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from mplang_core import Mask, Program
from mplang_core.ext import (
    Branch,
    Call,
    Forwards,
    Graph,
    Loop,
    Operation,
    PartyCall,
    ProgramOfRun,
    PublicLiteral,
    Value,
    compares,
    control_of,
    interface_of,
    messages_of,
)
from mplang_passes.rewrite import rewrite_graphs, rewrite_ops, rewrite_regions


@runtime_checkable
class Exact(Protocol):
    """Op interface: an op whose results on equal operands may be equal on every machine."""

    def is_exact(self, op: Operation) -> bool:
        """Return whether they are: it computes on integers, say, and draws nothing."""


def clear_agreements(program: Program) -> Program:
    """Mark predicates that are equal at all parties by construction: they skip the comparison.

    Those are made of literals and public inputs by ops that are :class:`Exact`. Floats may be
    rounded in another way on another machine, and what a party sent may not be what it sent to
    the others, so predicates of these are compared.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.while_loop(lambda i: i < 9, lambda i: i + 1, 0)
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).program
        >>> clear_agreements(traced).graph.ops[1].attrs["verify_uniform"]
        False
    """
    if not compares(program):
        return program
    public = program.public if isinstance(program, ProgramOfRun) else frozenset[int]()
    return rewrite_graphs(program, lambda graph: _cleared(graph, program.mask, public))


def _cleared(graph: Graph, world: Mask, public: Set[int]) -> Graph:
    differing = _Differing(world)
    differing.scan(graph)
    differing.mark(value for i, value in enumerate(graph.inputs) if i not in public)
    found = differing.found()

    def clear(op: Operation) -> Operation:
        op = rewrite_regions(op, lambda region: rewrite_ops(region, [*map(clear, region.ops)]))
        control = control_of(op)
        if not isinstance(control, Loop | Branch) or not control.compared:
            return op
        if found.isdisjoint([_predicate(op, control)]) and "verify_uniform" in op.attrs:
            return replace(op, attrs={**op.attrs, "verify_uniform": False})
        return op

    return rewrite_ops(graph, [*map(clear, graph.ops)])


def _predicate(op: Operation, control: Loop | Branch) -> Value:
    if isinstance(control, Branch):
        return op.inputs[0]
    return op.regions[control.condition].outputs[0]


@dataclass(slots=True)
class _Differing:
    """Values that may differ between their holders.

    A value differs if one that it depends on does; loops make cycles. So the dependencies are
    collected first, and followed once.

    Attributes:
        world: the parties of the program.
        roots: values that differ in themselves.
        used_by: per value those that depend on it.
    """

    world: Mask
    roots: set[Value] = field(default_factory=set)
    used_by: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))

    def mark(self, values: Iterable[Value]) -> None:
        """Mark values as possibly different."""
        self.roots.update(values)

    def scan(self, graph: Graph) -> None:
        """Collect the dependencies in a graph and in its regions."""
        for op in graph.ops:
            for region in op.regions.values():
                self.scan(region)
            self._scan_op(op)

    def found(self) -> set[Value]:
        """Return all values that may differ."""
        found, todo = set(self.roots), list(self.roots)
        while todo:
            new = [value for value in self.used_by[todo.pop()] if value not in found]
            found.update(new)
            todo += new
        return found

    def _depend(self, values: Sequence[Value], on: Sequence[Value]) -> None:
        """Record that each value depends on the one at its position."""
        for value, source in zip(values, on, strict=True):
            self.used_by[source].append(value)

    def _depend_all(self, values: Sequence[Value], on: Iterable[Value]) -> None:
        for source in on:
            self.used_by[source] += values

    def _scan_op(self, op: Operation) -> None:
        match control_of(op):
            case Call(region):
                self._pass_through(op, op.regions[region])
            case PartyCall(region, parties):
                self._pass_through(op, op.regions[region])
                if parties is None:
                    self.mark(op.outputs)
            case Loop() as loop:
                self._scan_loop(op, loop)
            case Branch() as branch:
                self._scan_branch(op, branch)
            case None:
                self._scan_simple(op)

    def _pass_through(self, op: Operation, region: Graph, first: int = 0) -> None:
        self._depend(region.inputs, op.inputs[first:])
        self._depend(op.outputs, region.outputs)

    def _scan_loop(self, op: Operation, loop: Loop) -> None:
        body, condition, size = op.regions[loop.body], op.regions[loop.condition], len(op.outputs)
        self._pass_through(op, body)
        self._depend(condition.inputs, op.inputs)
        self._depend(op.outputs, op.inputs[:size])
        self._depend(condition.inputs[:size], body.outputs)
        self._depend(body.inputs[:size], body.outputs)
        if not loop.compared:  # parties may take other numbers of turns
            self._depend_all(op.outputs, condition.outputs)

    def _scan_branch(self, op: Operation, branch: Branch) -> None:
        for name, _ in branch.taken:
            self._pass_through(op, op.regions[name], 1)
        if not branch.compared:
            self._depend_all(op.outputs, op.inputs[:1])

    def _scan_simple(self, op: Operation) -> None:
        if interface_of(op, PublicLiteral) is not None:
            return
        if self._gives_the_same(op):
            self._depend_all(op.outputs, op.inputs)
        else:
            self.mark(op.outputs)
            self.mark(value for region in op.regions.values() for value in region.inputs)

    def _gives_the_same(self, op: Operation) -> bool:
        """Return whether results are the same at all parties where the operands are."""
        exact = interface_of(op, Exact)
        if exact is not None:
            return exact.is_exact(op)
        is_copy = interface_of(op, Forwards) is not None and len(op.inputs) == 1
        return is_copy and messages_of(op, self.world) == ()

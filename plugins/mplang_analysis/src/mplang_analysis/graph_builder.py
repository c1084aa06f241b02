"""Graph builder: nodes and edges of a program, regions included."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mplang_analysis.graph_parts import Edge, Node, Region
from mplang_analysis.graph_view import GraphView
from mplang_analysis.line_texts import texts_by_line
from mplang_analysis.op_traits import base_of
from mplang_analysis.party_names import names_of, quoted, read_names
from mplang_analysis.subject import line_of, program_of
from mplang_analysis.type_size import payload
from mplang_analysis.words import When
from mplang_core import Form, Mask, MPType, Program
from mplang_core.ext import (
    AnyType,
    Branch,
    Call,
    Forwards,
    Graph,
    Labels,
    Location,
    Loop,
    Message,
    Operation,
    PartyCall,
    Value,
    control_of,
    holders_of,
    interface_of,
    messages_of,
)

Kind = Literal["input", "run", "move", "join", "region", "output"]


def graph(program: Any) -> GraphView:
    """Return a view of a program as text and as Mermaid; whole, or as one party sees it.

    Args:
        program: a program, or a function that was traced or compiled.

    Raises:
        TraceError: it is not a program.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "demo" on {0, 1} (%0: f32[3]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
        ...   return %1
        ... }''')
        >>> print(graph(program))
        demo on {0, 1}
           0 {0}        input 0 : f32[3]@{0}
           1 0->1       move(0) : f32[3]@{1} at demo.py:7
           2 {1}        output 0(1)
        >>> print(graph(program).party(1))
        demo on {0, 1}, as party 1 sees it
           1 0->1       receive from 0 : f32[3]@{1} at demo.py:7
           2 {1}        output 0(1)
    """
    view = view_of(program_of(program))
    return dataclasses.replace(view, names=read_names(names_of(program), view.parties))


def view_of(program: Program) -> GraphView:
    """Return the view of a program that is known to be valid."""
    return _Builder(program).view()


@dataclass(frozen=True, slots=True)
class _Scope:
    """Position of the walk: regions around it, and the line of the innermost op."""

    depth: int = 0
    region: int | None = None
    line: Location | None = None


class _Builder:
    """Builds the view of a program in one walk."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.regions: list[Region] = []

    def view(self) -> GraphView:
        graph, top = self.program.graph, _Scope()
        env: dict[Value, tuple[int, ...]] = {}
        for i, value in enumerate(graph.inputs):
            holders = holders_of(value.type, self.program.mask)
            env[value] = (self._add("input", f"input {i}", holders, [value], top),)
        given = self._walk(graph, env, top)
        for i, (value, sources) in enumerate(zip(graph.outputs, given, strict=True)):
            holders = holders_of(value.type, self.program.mask)
            self._connect(
                sources, self._add("output", f"output {i}", holders, [], top), value, holders
            )
        return GraphView(
            f"{quoted(self.program.name)} on {self.program.mask}",
            tuple(self.program.mask),
            tuple(self.nodes),
            tuple(self.edges),
            tuple(self.regions),
            texts_by_line(self.program),
        )

    def _walk(
        self, body: Graph, env: dict[Value, tuple[int, ...]], scope: _Scope
    ) -> list[tuple[int, ...]]:
        """Add the ops of a graph; return per output the nodes that it may come from."""
        for op in body.ops:
            here = dataclasses.replace(scope, line=line_of(op, scope.line))
            taken = [env[value] for value in op.inputs]
            routing = tuple((m.receiver, m.sender) for m in self._moves(op))
            node = self._add(
                self._kind(op), _label(op), self._takers(op), op.outputs, here, routing
            )
            for value, nodes in zip(op.inputs, taken, strict=True):
                self._connect(nodes, node, value, self._sources(op))
            env.update(dict.fromkeys(op.outputs, (node,)))
            if self._kind(op) == "region":
                env.update(self._regions(op, node, taken, here))
        return [env[value] for value in body.outputs]

    def _regions(
        self, op: Operation, node: int, taken: Sequence[tuple[int, ...]], scope: _Scope
    ) -> dict[Value, tuple[int, ...]]:
        """Add the regions of an op; return where its results come from."""
        found: dict[Value, tuple[int, ...]] = dict.fromkeys(op.outputs, (node,))
        control = control_of(op)
        for name, region in op.regions.items():
            size = len(region.inputs)  # the last operands; a predicate stands before them
            given = taken[-size:] if 0 < size <= len(taken) else [(node,)] * size
            made = Region(len(self.regions), f"{op.opcode} {name}", scope.region, _often(control))
            self.regions.append(made)
            inner = dataclasses.replace(scope, depth=scope.depth + 1, region=made.id)
            outs = self._walk(region, dict(zip(region.inputs, given, strict=True)), inner)
            is_condition = isinstance(control, Loop) and name == control.condition
            if len(outs) == len(op.outputs) and not is_condition:
                for value, nodes in zip(op.outputs, outs, strict=True):
                    found[value] = tuple(dict.fromkeys((*found[value], *nodes)))
        return found

    def _add(
        self,
        kind: Kind,
        label: str,
        parties: Mask,
        gives: Sequence[Value],
        scope: _Scope,
        routing: tuple[tuple[int, int], ...] = (),
    ) -> int:
        types = ", ".join(_short(value.type) for value in gives)
        id, line = len(self.nodes), str(scope.line or "")
        self.nodes.append(
            Node(id, kind, label, types, line, tuple(parties), routing, scope.depth, scope.region)
        )
        return id

    def _connect(self, sources: Sequence[int], node: int, value: Value, parties: Mask) -> None:
        at = tuple(holders_of(value.type, self.program.mask) & parties)
        form = base_of(value.type).form.value
        for source in dict.fromkeys(sources):
            self.edges.append(Edge(source, node, _short(value.type), form, at))

    # -- who takes part

    def _takers(self, op: Operation) -> Mask:
        """Return who takes part in an op."""
        control = control_of(op)
        if isinstance(control, PartyCall) and control.parties is not None:
            return control.parties
        moves = self._moves(op)
        if moves:
            return Mask.from_ranks(rank for m in moves for rank in (m.sender, m.receiver))
        if _is_silent(op, self.program.mask) and len(op.outputs) == 1:
            return holders_of(op.outputs[0].type, self.program.mask)
        return self.program.mask

    def _sources(self, op: Operation) -> Mask:
        """Return at whom the operands of an op are used."""
        moves = self._moves(op)
        return Mask.from_ranks(m.sender for m in moves) if moves else self._takers(op)

    def _moves(self, op: Operation) -> Sequence[Message]:
        """Return the messages of an op, if all of them are always sent."""
        messages = messages_of(op, self.program.mask) or ()
        return () if any(message.when for message in messages) else messages

    def _kind(self, op: Operation) -> Kind:
        if messages_of(op, self.program.mask):
            return "move"
        if interface_of(op, Forwards) is not None:
            return "join"
        return "region" if op.regions and not isinstance(control_of(op), PartyCall) else "run"


def _is_silent(op: Operation, world: Mask) -> bool:
    return not op.regions and messages_of(op, world) == ()


def _often(control: Call | PartyCall | Branch | Loop | None) -> str:
    """Return how often the regions of an op run."""
    match control:
        case Loop():
            return When.PER_ITERATION
        case Branch():
            return When.IN_A_BRANCH
        case Call() | PartyCall():
            return ""
    return When.ANY_NUMBER


def _label(op: Operation) -> str:
    labels = interface_of(op, Labels)
    found = op.opcode if labels is None else labels.label(op)
    if isinstance(control_of(op), Call):  # "call", and a name of the program's
        verb, _, name = found.partition(" ")
        return f"{verb} {quoted(name)}" if name else verb
    return found


def _short(kind: AnyType) -> str:
    """Return a type without what only its plugin cares about."""
    base = base_of(kind)
    text = str(base) if base.form is Form.PLAIN else f"{base.form.value} of {payload(base)}"
    if not isinstance(kind, MPType):
        return text
    return f"{text}@{'?' if kind.pmask is None else kind.pmask}"

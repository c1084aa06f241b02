"""Layout of a drawing: a lane per party, each op below what it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mplang_core.analysis.shapes import Edge, Group, Node
from mplang_core.analysis.sizes import payload
from mplang_core.analysis.source import line_of, program_of
from mplang_core.analysis.traits import base_of
from mplang_core.analysis.view import GraphView
from mplang_core.ir import (
    AnyType,
    Graph,
    Location,
    Operation,
    Program,
    Value,
    interface_of,
)
from mplang_core.mask import Mask
from mplang_core.simp.interfaces import (
    Forwards,
    Labels,
    Loop,
    Message,
    PartyCall,
    control_of,
    messages_of,
)
from mplang_core.types import Form, MPType

__all__ = ["graph"]

Kind = Literal["input", "run", "move", "join", "region", "output"]


def graph(program: Any) -> GraphView:
    """Draw a program: as text, as Mermaid, as a page; whole, or as one party sees it.

    Args:
        program: a program, or a function that was traced or compiled.

    Raises:
        TraceError: it is no program.
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
    found = program_of(program)
    return _Layout(found).view()


class _Layout:
    """Places nodes as it walks.

    Attributes:
        free: per lane the first row that has room.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.groups: list[Group] = []
        self.free = dict.fromkeys(program.mask, 0)

    def view(self) -> GraphView:
        made = self.program.graph
        env: dict[Value, tuple[int, ...]] = {}
        for i, value in enumerate(made.inputs):
            env[value] = (self._place("input", f"input {i}", self._holders(value), [value]),)
        given = self._walk(made, env, 0, None)
        for i, (value, sources) in enumerate(zip(made.outputs, given, strict=True)):
            parties = self._holders(value)
            node = self._place("output", f"output {i}", parties, [], after=sources)
            self._connect(sources, node, value, parties)
        return GraphView(
            f"{self.program.name} on {self.program.mask}",
            tuple(self.program.mask),
            tuple(self.nodes),
            tuple(self.edges),
            tuple(self.groups),
        )

    def _walk(
        self,
        body: Graph,
        env: dict[Value, tuple[int, ...]],
        depth: int,
        around: Location | None,
    ) -> list[tuple[int, ...]]:
        """Place the ops of a graph; return per output the nodes that it may come from."""
        for op in body.ops:
            line, taken = line_of(op, around), [env[value] for value in op.inputs]
            node = self._op(op, [id for nodes in taken for id in nodes], line, depth)
            for value, nodes in zip(op.inputs, taken, strict=True):
                self._connect(nodes, node, value, self._sources(op))
            env.update(dict.fromkeys(op.outputs, (node,)))
            if self._kind(op) == "region":
                env.update(self._regions(op, node, taken, depth, line))
        return [env[value] for value in body.outputs]

    def _op(self, op: Operation, after: Sequence[int], line: Location | None, depth: int) -> int:
        kind = self._kind(op)
        if kind == "region":
            self._barrier()
        return self._place(
            kind,
            _label(op),
            self._takers(op),
            op.outputs,
            after=after,
            line=line,
            depth=depth,
            routing=tuple((m.receiver, m.sender) for m in self._moves(op)),
        )

    def _regions(
        self,
        op: Operation,
        node: int,
        taken: Sequence[tuple[int, ...]],
        depth: int,
        line: Location | None,
    ) -> dict[Value, tuple[int, ...]]:
        """Place the regions one below the other; return where the op's results come from."""
        found: dict[Value, tuple[int, ...]] = dict.fromkeys(op.outputs, (node,))
        for name, region in op.regions.items():
            self._barrier()
            first = max(self.free.values())
            size = len(region.inputs)  # the last operands; a predicate stands before them
            given = taken[-size:] if 0 < size <= len(taken) else [(node,)] * size
            inner = dict(zip(region.inputs, given, strict=True))
            outs = self._walk(region, inner, depth + 1, line)
            self._barrier()
            last = max(self.free.values()) - 1
            if last >= first:
                self.groups.append(Group(f"{op.opcode} {name}", first, last, depth))
            control = control_of(op)
            is_condition = isinstance(control, Loop) and name == control.condition
            if len(outs) == len(op.outputs) and not is_condition:
                for value, nodes in zip(op.outputs, outs, strict=True):
                    found[value] = tuple(dict.fromkeys((*found[value], *nodes)))
        return found

    def _place(
        self,
        kind: Kind,
        label: str,
        parties: Mask,
        gives: Sequence[Value],
        *,
        after: Sequence[int] = (),
        line: Location | None = None,
        depth: int = 0,
        routing: tuple[tuple[int, int], ...] = (),
    ) -> int:
        lanes = [rank for rank in self.free if parties.first <= rank <= max(parties)]
        row = max(
            [self.free[rank] for rank in lanes] + [self.nodes[node].row + 1 for node in after]
        )
        self.free.update(dict.fromkeys(lanes, row + 1))
        types = ", ".join(_short(value.type) for value in gives)
        id, where, ranks = len(self.nodes), str(line or ""), tuple(parties)
        self.nodes.append(Node(id, kind, label, types, where, ranks, routing, row, depth))
        return id

    def _connect(self, sources: Sequence[int], node: int, value: Value, parties: Mask) -> None:
        at = tuple(self._holders(value) & parties)
        kind = base_of(value.type)
        for source in dict.fromkeys(sources):
            self.edges.append(Edge(source, node, _short(value.type), kind.form.value, at))

    def _barrier(self) -> None:
        self.free = dict.fromkeys(self.free, max(self.free.values()))

    # -- who takes part

    def _holders(self, value: Value) -> Mask:
        pmask = value.type.pmask if isinstance(value.type, MPType) else None
        return self.program.mask if pmask is None else pmask

    def _takers(self, op: Operation) -> Mask:
        """Return who takes part in an op."""
        control = control_of(op)
        if isinstance(control, PartyCall) and control.parties is not None:
            return control.parties
        moves = self._moves(op)
        if moves:
            return Mask.from_ranks(rank for m in moves for rank in (m.sender, m.receiver))
        if _is_silent(op, self.program.mask) and len(op.outputs) == 1:
            return self._holders(op.outputs[0])
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


def _label(op: Operation) -> str:
    labels = interface_of(op, Labels)
    return op.opcode if labels is None else labels.label(op)


def _short(kind: AnyType) -> str:
    """Return a type without what only its plugin cares about."""
    base = base_of(kind)
    text = str(base) if base.form is Form.PLAIN else f"{base.form.value} of {payload(base)}"
    if not isinstance(kind, MPType):
        return text
    return f"{text}@{'?' if kind.pmask is None else kind.pmask}"

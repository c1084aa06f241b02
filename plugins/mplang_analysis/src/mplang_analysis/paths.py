"""The way of private data through a program, by the user's lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mplang_analysis import op_traits
from mplang_analysis.storage import use_of
from mplang_core import Mask, Program
from mplang_core.ext import (
    Branch,
    Call,
    Graph,
    Location,
    Loop,
    Operation,
    PartyCall,
    Value,
    control_of,
)


def path_to(program: Program, line: str, party: int, name: str) -> tuple[str, ...]:
    """Return the lines by which private data comes to where it is disclosed, in order.

    It is the shortest way from operand to result; there may be others.

    Args:
        program: the whole program.
        line: where it is disclosed, as in the disclosure table.
        party: whose data it is.
        name: its name, as that of a source of a label.

    Returns:
        The lines, that of the disclosure last; none if they are not known.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "mistake" on {0, 1} (%0: f32[3]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
        ...   return %1
        ... }''')
        >>> path_to(program, "demo.py:7", 0, "input 0")
        ('demo.py:7',)
    """
    ways = _Ways()
    ways.enter(program.graph, None, program.mask)
    begins = list(ways.readers(party, name))
    if not begins:  # from an earlier program
        begins = [(value, "") for value in program.graph.inputs]
        begins += [(value, line) for value, line in ways.loaded]
    found = ways.shortest(begins, line)
    return tuple(dict.fromkeys(line for line in found if line))


@dataclass
class _Ways:
    """Dependencies of values, over all regions, with their lines.

    Attributes:
        onward: per value those that are made of it.
        made_at: per value the line that makes it.
        ending: per line the operands and results of its ops.
        loaded: what is loaded from storage.
    """

    onward: dict[Value, list[Value]] = field(default_factory=dict)
    made_at: dict[Value, str] = field(default_factory=dict)
    ending: dict[str, set[Value]] = field(default_factory=dict)
    loaded: list[tuple[Value, str]] = field(default_factory=list)
    _reads: list[tuple[Operation, str, Mask]] = field(default_factory=list)
    _entered: set[int] = field(default_factory=set)

    def enter(self, graph: Graph, line: Location | None, parties: Mask) -> None:
        """Add the ops of a graph; once, if functions share it."""
        if id(graph) in self._entered:
            return
        self._entered.add(id(graph))
        for op in graph.ops:
            at = op.location or line
            here = str(at or "")
            self.ending.setdefault(here, set()).update(op.inputs, op.outputs)
            self.made_at.update(dict.fromkeys(op.outputs, here))
            if op_traits.reads(op):
                self._reads.append((op, here, parties))
            if use_of(op)[0] == "load":
                self.loaded += [(value, here) for value in op.outputs]
            if not op.regions:
                self._link(op.inputs, op.outputs)
            control = control_of(op)
            inner = control.parties if isinstance(control, PartyCall) else None
            for region in op.regions.values():
                self.enter(region, at, parties if inner is None else inner)
            for before, after in _passed(op):
                self._link_each(before, after)

    def _link(self, before: Sequence[Value], after: Sequence[Value]) -> None:
        for value in before:
            self.onward.setdefault(value, []).extend(after)

    def _link_each(self, before: Sequence[Value], after: Sequence[Value]) -> None:
        if len(before) != len(after):
            self._link(before, after)
            return
        for each, other in zip(before, after, strict=True):
            self._link([each], [other])

    def readers(self, party: int, name: str) -> Iterator[tuple[Value, str]]:
        """Yield what ops make that read private data, with their lines."""
        for op, line, parties in self._reads:
            if party in parties and name in op_traits.reads(op):
                yield from ((value, line) for value in op.outputs)

    def shortest(self, begins: Sequence[tuple[Value, str]], line: str) -> list[str]:
        """Return the lines of the shortest way to an op of a line."""
        ends = self.ending.get(line, set())
        before: dict[Value, Value | None] = {}
        queue: deque[Value] = deque()
        for value, _ in begins:
            if before.setdefault(value, None) is None:
                queue.append(value)
        while queue:
            value = queue.popleft()
            if value in ends:
                return [*self._lines(value, before), line]
            for after in self.onward.get(value, ()):
                if after not in before:
                    before[after] = value
                    queue.append(after)
        return []

    def _lines(self, value: Value, before: Mapping[Value, Value | None]) -> list[str]:
        found, at = [], value
        while True:
            found.append(self.made_at.get(at, ""))
            previous = before[at]
            if previous is None:
                return found[::-1]
            at = previous


def _passed(op: Operation) -> Iterator[tuple[Sequence[Value], Sequence[Value]]]:
    """Yield between which values an op with regions passes data on."""
    control, regions = control_of(op), op.regions
    match control:
        case Call() | PartyCall():
            region = regions[control.region]
            yield op.inputs, region.inputs
            yield region.outputs, op.outputs
        case Branch():
            for region in regions.values():
                yield op.inputs[1:], region.inputs
                yield op.inputs[:1], region.outputs
                yield region.outputs, op.outputs
        case Loop():
            condition, body = regions[control.condition], regions[control.body]
            state = len(op.outputs)
            yield op.inputs, condition.inputs
            yield op.inputs, body.inputs
            yield condition.outputs, body.outputs
            yield body.outputs, body.inputs[:state]
            yield body.outputs, condition.inputs[:state]
            yield body.outputs, op.outputs
            yield op.inputs[:state], op.outputs
        case _:
            for region in regions.values():
                yield op.inputs, region.inputs
                yield region.outputs, op.outputs

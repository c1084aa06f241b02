"""Round complexity: the longest chain of messages that wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mplang_analysis import op_traits
from mplang_analysis.subject import line_of
from mplang_core import Mask
from mplang_core.ext import (
    MAX_DIRECT,
    Branch,
    Call,
    Forwards,
    Graph,
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

Depth: TypeAlias = Mapping[int, int]
"""Per holder of a value the messages that came before it, one after the other."""


@dataclass(slots=True)
class Rounds:
    """The longest chain of messages of which each waits for the one before.

    Args:
        world: the parties.
        location: the line of what is around.
        begin: messages before which nothing starts, those of a predicate.

    Attributes:
        longest: messages in the chain, those in loops left out.
        loops: per loop its line, and the chain of one turn. An inner loop follows the outer.
    """

    world: Mask
    location: Location | None = None
    begin: int = 0
    longest: int = 0
    loops: list[tuple[Location | None, int]] = field(default_factory=list)

    def walk(self, graph: Graph, depths: Sequence[Depth]) -> list[Depth]:
        """Go through a graph whose inputs have these depths."""
        env: dict[Value, Depth] = dict(zip(graph.inputs, depths, strict=True))
        for op in graph.ops:
            found = self._step(op, [env[value] for value in op.inputs])
            outs = [_not_before(depth, self.begin) for depth in found]
            self.longest = max([self.longest, *(d for out in outs for d in out.values())])
            env.update(zip(op.outputs, outs, strict=True))
        return [env[value] for value in graph.outputs]

    def start(self, graph: Graph) -> list[Depth]:
        """Go through a graph whose inputs are there from the beginning."""
        return self.walk(graph, [dict.fromkeys(self.world, self.begin) for _ in graph.inputs])

    def _step(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        control = control_of(op)
        match control:
            case Call():
                return self.walk(op.regions[control.region], ins)
            case PartyCall():
                return self._party_call(op, control, ins)
            case Branch():
                return self._branch(op, control, ins)
            case Loop():
                return self._loop(op, control, ins)
        messages = messages_of(op, self.world)
        return self._together(op, ins) if messages is None else self._exchange(op, messages, ins)

    def _together(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        """Of an op that does not tell its messages, none is counted; all parties wait for all."""
        ready = max([0, *(rank for depth in ins for rank in depth.values())])
        return [dict.fromkeys(self.world, ready)] * len(op.outputs)

    def _party_call(self, op: Operation, call: PartyCall, ins: Sequence[Depth]) -> list[Depth]:
        parties = self.world if call.parties is None else call.parties
        found = {rank: max([0, *(depth.get(rank, 0) for depth in ins)]) for rank in parties}
        if any(map(op_traits.acts_together, op.regions[call.region].ops)):
            found = dict.fromkeys(parties, max(found.values()))
        return [found] * len(op.outputs)

    def _exchange(
        self, op: Operation, messages: Sequence[Message], ins: Sequence[Depth]
    ) -> list[Depth]:
        """A message waits for what it carries, and for those of lower stages at its sender."""
        arrived: list[tuple[Message, int]] = []
        for each in sorted(messages, key=lambda message: message.stage):
            before = [
                depth for m, depth in arrived if m.receiver == each.sender and m.stage < each.stage
            ]
            carried = ins if each.operand is None else [ins[each.operand]]
            ready = [depth.get(each.sender, 0) for depth in carried]
            arrived.append((each, max([0, *ready, *before]) + 1))
        forwards = interface_of(op, Forwards)
        return [
            {
                rank: self._ready(forwards.sources(op, i) if forwards else (), ins, arrived, rank)
                for rank in holders_of(value.type, self.world)
            }
            for i, value in enumerate(op.outputs)
        ]

    def _ready(
        self,
        sources: Sequence[int],
        ins: Sequence[Depth],
        arrived: Sequence[tuple[Message, int]],
        rank: int,
    ) -> int:
        """Return when a party has an output: what arrived for it, else when its operands are."""
        here = [(message, depth) for message, depth in arrived if message.receiver == rank]
        replaced = any(m.operand in sources and m.type is None and not m.when for m, _ in here)
        own = [] if replaced else [depth.get(rank, 0) for depth in ins]
        return max([0, *own, *(depth for _, depth in here)])

    def _branch(self, op: Operation, branch: Branch, ins: Sequence[Depth]) -> list[Depth]:
        before, self.begin = self.begin, self._agreed(branch.compared, ins[0])
        args = [_not_before(depth, self.begin) for depth in ins[1:]]
        branches = [self.walk(op.regions[name], args) for name, _ in branch.taken]
        self.begin = before
        return [_latest(pair) for pair in zip(*branches, strict=True)]

    def _loop(self, op: Operation, loop: Loop, ins: Sequence[Depth]) -> list[Depth]:
        """Count one turn by itself; outside of it, only the first agreement is certain."""
        turn = Rounds(self.world, line_of(op, self.location))
        (pred,) = turn.start(op.regions[loop.condition])
        turn.begin = turn._agreed(loop.compared, pred)
        turn.start(op.regions[loop.body])
        self.loops += [(turn.location, turn.longest), *turn.loops]
        ready = max([self.begin, *(rank for depth in ins for rank in depth.values())])
        return [dict.fromkeys(self.world, ready + turn.begin) for _ in op.outputs]

    def _agreed(self, compared: bool, pred: Depth) -> int:
        rounds = 0 if not compared or len(self.world) == 1 else 1 + (len(self.world) > MAX_DIRECT)
        agreed = max([self.begin, *pred.values()]) + rounds
        self.longest = max(self.longest, agreed)
        return agreed


def _latest(depths: Sequence[Depth]) -> Depth:
    ranks = {rank for depth in depths for rank in depth}
    return {rank: max(depth.get(rank, 0) for depth in depths) for rank in ranks}


def _not_before(depth: Depth, agreed: int) -> Depth:
    return {rank: max(found, agreed) for rank, found in depth.items()}

"""How often messages must wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mplang_core.analysis import traits
from mplang_core.analysis.source import line_of
from mplang_core.ir import Graph, Location, Operation, Value
from mplang_core.mask import Mask

__all__ = ["Rounds"]

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
            step = _STEPS.get(op.opcode, Rounds._apply)
            found = step(self, op, [env[value] for value in op.inputs])
            outs = [_not_before(depth, self.begin) for depth in found]
            self.longest = max([self.longest, *(d for out in outs for d in out.values())])
            env.update(zip(op.outputs, outs, strict=True))
        return [env[value] for value in graph.outputs]

    def start(self, graph: Graph) -> list[Depth]:
        """Go through a graph whose inputs are there from the beginning."""
        return self.walk(graph, [dict.fromkeys(self.world, self.begin) for _ in graph.inputs])

    def _apply(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        parties = op.attrs["parties"] if op.opcode == "simp.pcall_static" else self.world
        found = {rank: max([0, *(depth.get(rank, 0) for depth in ins)]) for rank in parties}
        body = op.regions.get("do")
        together = body is None or any(map(traits.acts_together, body.ops))
        if together:
            found = dict.fromkeys(parties, max(found.values()))
        return [found] * len(op.outputs)

    def _constant(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        return [dict.fromkeys(op.attrs["parties"], 0)]

    def _shuffle_static(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        routing = op.attrs["routing"]
        return [{to: ins[0].get(frm, 0) + (to != frm) for to, frm in routing}]

    def _shuffle_dynamic(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        ready = max([0, *(rank for depth in ins for rank in depth.values())])
        return [dict.fromkeys(ins[1], ready + 2)]

    def _converge(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        return [_latest(ins)]

    def _call(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        return self.walk(op.regions["body"], ins)

    def _uniform_cond(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        before, self.begin = self.begin, self._agreed(op, ins[0])
        args = [_not_before(depth, self.begin) for depth in ins[1:]]
        branches = [self.walk(region, args) for region in op.regions.values()]
        self.begin = before
        return [_latest(pair) for pair in zip(*branches, strict=True)]

    def _while_loop(self, op: Operation, ins: Sequence[Depth]) -> list[Depth]:
        """Count one turn by itself; outside of it, only the first agreement is certain."""
        turn = Rounds(self.world, line_of(op, self.location))
        (pred,) = turn.start(op.regions["cond"])
        turn.begin = turn._agreed(op, pred)
        turn.start(op.regions["body"])
        self.loops += [(turn.location, turn.longest), *turn.loops]
        ready = max([self.begin, *(rank for depth in ins for rank in depth.values())])
        return [dict.fromkeys(self.world, ready + turn.begin) for _ in op.outputs]

    def _agreed(self, op: Operation, pred: Depth) -> int:
        compared = len(self.world) > 1 and op.attrs["verify_uniform"]
        agreed = max([self.begin, *pred.values()]) + bool(compared)
        self.longest = max(self.longest, agreed)
        return agreed


def _latest(depths: Sequence[Depth]) -> Depth:
    ranks = {rank for depth in depths for rank in depth}
    return {rank: max(depth.get(rank, 0) for depth in depths) for rank in ranks}


def _not_before(depth: Depth, agreed: int) -> Depth:
    return {rank: max(found, agreed) for rank, found in depth.items()}


_STEPS: Mapping[str, Callable[[Rounds, Operation, Sequence[Depth]], list[Depth]]] = {
    "simp.constant": Rounds._constant,
    "simp.shuffle_static": Rounds._shuffle_static,
    "simp.shuffle_dynamic": Rounds._shuffle_dynamic,
    "simp.converge": Rounds._converge,
    "simp.uniform_cond": Rounds._uniform_cond,
    "simp.while_loop": Rounds._while_loop,
    "func.call": Rounds._call,
    "func.launch": Rounds._call,
}

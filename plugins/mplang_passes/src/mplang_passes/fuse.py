"""Fusion of neighbouring ``pcall``s into one.

Each ``pcall`` costs a job in standard mode. The order of what parties do together stays: only
bodies whose ops have no effects are moved, only ahead of other ``pcall``s of that kind and of
ops that neither run anything nor send messages, so that no message waits for them. Inner ops
keep their source lines.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from functools import partial

from mplang_core import BaseType, Mask, MPType, Program
from mplang_core.ext import (
    Effects,
    Graph,
    Operation,
    PartyCall,
    PublicLiteral,
    Value,
    control_of,
    interface_of,
    messages_of,
)
from mplang_passes.effects import effects_of
from mplang_passes.rewrite import inline, lookup, rewrite_graphs, rewrite_ops, rewrite_regions


def fuse_pcalls(program: Program) -> Program:
    """Fuse neighbouring ops ``pcall`` that the same parties run into one.

    Two of ``pcall_static`` need the same parties, and operands whose masks are known, so that
    none can be missing when it runs. A ``pcall_dynamic`` joins another one if it surely has the
    same holders: its operands are results of that one, or operands that all have it run.

    Example:
        >>> from mplang_core import parse
        >>> print(fuse_pcalls(parse('''program "p" on {0} (%0: i64[]@{0}) {
        ...   %2 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
        ...     return %1
        ...   } : i64[]@{0}
        ...   %5 = simp.pcall_static(%0, %2) {parties = {0}} do (%3: i64[], %4: i64[]) {
        ...     return %4
        ...   } : i64[]@{0}
        ...   return %5
        ... }''')))
        program "p" on {0} (%0: i64[]@{0}) {
          %2 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
            return %1
          } : i64[]@{0}
          return %2
        }
        <BLANKLINE>
    """
    return rewrite_graphs(program, partial(_fuse, program.mask))


def _fuse(world: Mask, graph: Graph) -> Graph:
    scan = _Scan(world)
    rewrite = partial(_fuse, world)
    literals = [op for op in graph.ops if _is_literal(op)]
    scan.items += literals  # before the pcalls that they stand between
    for op in graph.ops:
        if not _is_literal(op):
            scan.add(rewrite_regions(op, rewrite))
    used, ops = set(graph.outputs), list[Operation]()
    for item in reversed(scan.items):
        op = item if isinstance(item, Operation) else item.fused(used)
        used.update(op.inputs)
        ops.append(op)
    return rewrite_ops(graph, ops[::-1])


def _is_literal(op: Operation) -> bool:
    return interface_of(op, PublicLiteral) is not None


def _is_passive(op: Operation, world: Mask) -> bool:
    """Return whether an op neither runs anything nor sends messages, as ``converge``."""
    return not op.regions and effects_of(op) is Effects.NONE and messages_of(op, world) == ()


@dataclass(slots=True, eq=False)
class _Group:
    """Group of ``pcall``s to fuse.

    Attributes:
        parts: the ``pcall``s in order.
        defined: their results.
    """

    parts: list[Operation] = field(default_factory=list)
    defined: set[Value] = field(default_factory=set)

    def admits(self, op: Operation) -> bool:
        """Return whether the same parties are known to run the op."""
        first, control = self.parts[0], control_of(op)
        if op.opcode != first.opcode or op.attrs != first.attrs:
            return False
        if isinstance(control, PartyCall) and control.parties is not None:
            return all(map(_mask_is_known, (*op.inputs, *first.inputs)))
        ours, theirs = set(op.inputs) - self.defined, set(first.inputs)
        return ours == theirs or (ours < theirs and not self.defined.isdisjoint(op.inputs))

    def join(self, op: Operation) -> None:
        self.parts.append(op)
        self.defined.update(op.outputs)

    def fused(self, used: Set[Value]) -> Operation:
        """Return one op with the results that others use."""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first
        (name,) = first.regions
        env = {v: Value(_base(v)) for p in self.parts for v in p.inputs if v not in self.defined}
        operands, params, ops = tuple(env), list(env.values()), list[Operation]()
        for part in self.parts:
            results = inline(part.regions[name], lookup(env, part.inputs), ops)
            env.update(zip(part.outputs, results, strict=True))
        outputs = tuple(v for part in self.parts for v in part.outputs if v in used)
        body = Graph(params, ops, list(lookup(env, outputs)))
        return replace(first, inputs=operands, outputs=outputs, regions={name: body})


def _mask_is_known(value: Value) -> bool:
    return isinstance(value.type, MPType) and value.type.pmask is not None


def _base(value: Value) -> BaseType:
    assert isinstance(value.type, MPType)
    return value.type.base


@dataclass(slots=True)
class _Scan:
    """Scan of the ops of a graph for groups.

    Args:
        world: the parties of the program.

    Attributes:
        items: what becomes of them, in order.
        position: per value the item that defines it; literals and inputs stand before all.
        open: the groups that may grow, by position. After each stand only groups whose ops
            have no effects, and passive ops.
    """

    world: Mask
    items: list[Operation | _Group] = field(default_factory=list)
    position: dict[Value, int] = field(default_factory=dict)
    open: dict[int, _Group] = field(default_factory=dict)

    def add(self, op: Operation) -> None:
        if isinstance(control_of(op), PartyCall):
            self._add_pcall(op)
            return
        if self.open and not _is_passive(op, self.world):
            self.open.clear()
        self.position.update(dict.fromkeys(op.outputs, len(self.items)))
        self.items.append(op)

    def _add_pcall(self, op: Operation) -> None:
        quiet = effects_of(op) is Effects.NONE
        at = self._find_group(op, quiet)
        if at == len(self.items):
            self.items.append(_Group())
        group = self.items[at]
        assert isinstance(group, _Group)
        group.join(op)
        self.position.update(dict.fromkeys(op.outputs, at))
        self.open = {**self.open, at: group} if quiet else {at: group}

    def _find_group(self, op: Operation, quiet: bool) -> int:
        """Return the position of the group that the op joins, or that of a new one."""
        ready = max((self.position.get(value, -1) for value in op.inputs), default=-1)
        for at, group in reversed(self.open.items()):
            last = at == len(self.items) - 1
            if ready <= at and (quiet or last) and group.admits(op):
                return at
        return len(self.items)

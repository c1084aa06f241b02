"""Operands that decide how often a loop turns, or which branch is taken. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from jaxlib.mlir import ir

from mplang_stablehlo.call_graph import check_call_graph
from mplang_stablehlo.module import parse, walk
from mplang_stablehlo.text import read

Positions: TypeAlias = frozenset[int]
"""Positions of operands of a function."""

NOTHING: Positions = frozenset()
BRANCHES = ("stablehlo.case", "stablehlo.if")


@functools.lru_cache(maxsize=256)  # loops repeat the same code
def deciding_operands(code: bytes) -> tuple[int, ...]:
    """Return the operands of ``main`` upon which conditions of loops or branches depend.

    A loop of a fixed number of turns depends on none, as its counter does not.

    Args:
        code: compressed text of a module.

    Raises:
        ValueError: it is no StableHLO.
    """
    text = read(code)
    if not any(name in text for name in ("stablehlo.while", *BRANCHES)):
        return ()
    try:
        module = parse(text)
    except ir.MLIRError:
        raise ValueError("it is no StableHLO") from None
    check_call_graph(module)
    functions = {_symbol(op.operation): op.operation for op in module.body.operations}
    flow = _Flow(functions)
    return tuple(sorted(flow.summary("main").deciding))


@dataclass
class _Summary:
    """What a function depends on, as positions of its operands.

    Attributes:
        results: for each result the operands that flow into it.
        deciding: the operands that flow into a condition.
    """

    results: Sequence[Positions]
    deciding: Positions


@dataclass
class _Flow:
    """Dependences of functions, each looked at once."""

    functions: dict[str, ir.Operation]
    known: dict[str, _Summary] = field(default_factory=dict)

    def summary(self, name: str) -> _Summary:
        """Return what a function depends on; no function calls itself."""
        if name not in self.known:
            block = self.functions[name].regions[0].blocks[0]
            own = [frozenset([i]) for i in range(len(block.arguments))]
            body = _Body(self)
            results = body.block(block, own)
            self.known[name] = _Summary(results, body.deciding)
        return self.known[name]


class _Body:
    """Dependences of the values of one function.

    Attributes:
        deciding: the operands that flow into a condition.
    """

    def __init__(self, flow: _Flow) -> None:
        self.deciding = NOTHING
        self._flow = flow
        self._env: dict[ir.Value, Positions] = {}

    def block(self, block: ir.Block, given: Sequence[Positions]) -> list[Positions]:
        """Follow a block; return what flows into what it returns."""
        self._env.update(zip(block.arguments, given, strict=True))
        *ops, end = (op.operation for op in block.operations)
        for op in ops:
            self._env.update(zip(op.results, self._results(op), strict=True))
        return [self._env[value] for value in end.operands]

    def _results(self, op: ir.Operation) -> Sequence[Positions]:
        ins = [self._env[value] for value in op.operands]
        if op.name == "stablehlo.while":
            return self._loop(op, ins)
        if op.name in BRANCHES:
            self.deciding |= ins[0]
            taken = [self.block(region.blocks[0], []) for region in op.regions]
            return [ins[0].union(*each) for each in zip(*taken, strict=True)]
        if op.name == "func.call":
            callee = self._flow.summary(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
            self.deciding = self.deciding.union(*(ins[i] for i in callee.deciding))
            return [NOTHING.union(*(ins[i] for i in each)) for each in callee.results]
        inner = list(walk(op)) if op.regions else []  # of a reduction, a sort, …
        ins += [self._env[v] for each in inner for v in each.operands if v in self._env]
        found = NOTHING.union(*ins)
        if any(each.name in ("stablehlo.while", *BRANCHES, "func.call") for each in inner):
            self.deciding |= found
        return [found] * len(op.results)

    def _loop(self, op: ir.Operation, ins: Sequence[Positions]) -> Sequence[Positions]:
        """Go round until nothing new flows; the sets of positions only grow."""
        condition, body = (region.blocks[0] for region in op.regions)
        state = list(ins)
        while True:
            (decides,) = self.block(condition, state)
            after = self.block(body, state)
            wider = [a | b for a, b in zip(state, after, strict=True)]
            if wider == state:
                self.deciding |= decides
                return [each | decides for each in state]
            state = wider


def _symbol(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)

"""Operands that decide how often a loop turns, or which branch is taken. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        ValueError: it is not StableHLO.
    """
    text = read(code)
    if not any(name in text for name in ("stablehlo.while", *BRANCHES)):
        return ()
    return tuple(sorted(_Flow(_parsed(text)).summary("main").deciding))


def secret_loop(code: bytes, secret: Sequence[bool]) -> int | None:
    """Return the first loop whose condition depends on secrets.

    Args:
        code: compressed text of a module.
        secret: whether each operand of ``main`` is secret.

    Returns:
        The position of the loop in the order of :func:`mplang_stablehlo.module.walk`; ``None`` if
        there is none.

    Raises:
        ValueError: it is not StableHLO.
    """
    module = _parsed(read(code))
    loops = _Flow(module, keeps_loops=True).summary("main").loops
    secrets = frozenset(i for i, is_secret in enumerate(secret) if is_secret)
    found = {op for op, decides in loops.items() if decides & secrets}
    return next((i for i, op in enumerate(walk(module.operation)) if op in found), None)


def _parsed(text: str) -> ir.Module:
    try:
        module = parse(text)
    except ir.MLIRError:
        raise ValueError("it is not StableHLO") from None
    check_call_graph(module)
    return module


@dataclass
class _Summary:
    """Dependencies of a function, as positions of its operands.

    Attributes:
        results: for each result the operands that flow into it.
        deciding: the operands that flow into a condition.
        loops: for each loop, also of functions that it calls, those that flow into its condition.
    """

    results: Sequence[Positions]
    deciding: Positions
    loops: Mapping[ir.Operation, Positions]


class _Flow:
    """Dependences of functions, each looked at once.

    Args:
        module: the functions.
        keeps_loops: whether summaries have the loops of functions that are called.
    """

    def __init__(self, module: ir.Module, *, keeps_loops: bool = False) -> None:
        self.keeps_loops = keeps_loops
        self._module = module  # its ops do not keep it alive
        self._functions = {_symbol(op.operation): op.operation for op in module.body.operations}
        self._known: dict[str, _Summary] = {}

    def summary(self, name: str) -> _Summary:
        """Return what a function depends on; no function calls itself."""
        if name not in self._known:
            block = self._functions[name].regions[0].blocks[0]
            own = [frozenset([i]) for i in range(len(block.arguments))]
            body = _Body(self)
            results = body.block(block, own)
            self._known[name] = _Summary(results, body.deciding, body.loops)
        return self._known[name]


class _Body:
    """Dependences of the values of one function.

    Attributes:
        deciding: the operands that flow into a condition.
        loops: those that flow into the condition of each loop.
    """

    def __init__(self, flow: _Flow) -> None:
        self.deciding = NOTHING
        self.loops: dict[ir.Operation, Positions] = {}
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
            if self._flow.keeps_loops:
                for loop, decides in callee.loops.items():
                    self._note_loop(loop, NOTHING.union(*(ins[i] for i in decides)))
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
                self._note_loop(op, decides)
                return [each | decides for each in state]
            state = wider

    def _note_loop(self, op: ir.Operation, decides: Positions) -> None:
        self.loops[op] = self.loops.get(op, NOTHING) | decides


def _symbol(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)

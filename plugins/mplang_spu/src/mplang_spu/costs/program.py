"""Costs of a program: those of its ops, as often as they run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mplang_spu.costs.expense import Expense
from mplang_spu.costs.op_counter import OpCounter, Stand
from mplang_spu.costs.pphlo import PphloFunction, PphloOp, PphloRegion, Tensor

FREE = {
    "bitcast_convert", "broadcast", "broadcast_as", "concatenate", "constant", "iota", "pad",
    "reshape", "reverse", "slice", "transpose",
}  # fmt: skip
"""Ops that move elements, which sends nothing unless they are stored in several ways."""

BITWISE = {"and", "or", "xor", "arshift", "lshift", "rshift"}
"""Ops whose results have as many bits as their public operand has."""

_INTEGERS = re.compile(r"dense<([-\d, \[\]]+)>")


class Row(NamedTuple):
    """Op of a program, and what it takes.

    Attributes:
        name: of the op.
        line: of the StableHLO; 0 if unknown.
        elements: of its largest result.
        turns: how often it runs; ``None`` if that is not known.
        takes: what it takes in one turn; ``None`` if that is not known.
        batches: the prepared products that are made for it, in all turns.
    """

    name: str
    line: int
    elements: int
    turns: int | None
    takes: Expense | None
    batches: Expense = Expense()


@dataclass
class _Scope:
    """Known costs of the values at a place."""

    types: dict[str, Tensor] = field(default_factory=dict)
    stands: dict[str, Stand | None] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def inner(self) -> _Scope:
        return _Scope(dict(self.types), dict(self.stands), dict(self.numbers))


class ProgramCounter:
    """Counter of a program's ops.

    Args:
        counter: of single ops.
        lines: of the StableHLO, by the identity of the op.

    Attributes:
        rows: what the ops take.
    """

    def __init__(self, counter: OpCounter, lines: Mapping[int, int]) -> None:
        self._counter, self._lines = counter, lines
        self.rows: list[Row] = []

    def count(self, program: PphloFunction, known: Sequence[NDArray[np.generic]] = ()) -> None:
        """Count what the ops of a program take, in order.

        Args:
            program: the program.
            known: its last operands, which are public and always the same.
        """
        scope = _Scope()
        for name, array in zip(reversed(program.names), reversed(known), strict=False):
            if array.dtype.kind in "iu" and array.size:
                scope.numbers[name] = int(array.max())
        for name, kind in zip(program.names, program.takes, strict=True):
            scope.types[name] = kind
            scope.stands[name] = self._counter.input(kind) if kind.size else None
        self._region(program.body, scope, 1)

    def _region(self, region: PphloRegion, scope: _Scope, turns: int | None) -> None:
        for op in region.ops:
            if not op.results:  # a return, or the end of a value
                continue
            if op.name == "while":
                self._loop(op, scope, turns)
            elif op.name == "if":
                self._branches(op, scope, turns)
            elif op.name in FREE and len(self._sources(op, scope)) <= 1:
                self._moved(op, scope)
            else:
                self._op(op, scope, turns)

    def _sources(self, op: PphloOp, scope: _Scope) -> set[Stand]:
        """Return what stands for the elements that an op moves."""
        if op.name == "broadcast_as":  # its second operand is a shape
            return set(filter(None, [scope.stands[op.operands[0]]]))
        return set(filter(None, map(scope.stands.__getitem__, op.operands)))

    def _moved(self, op: PphloOp, scope: _Scope) -> None:
        number = _largest(op.text) if op.name == "constant" else None
        if op.name == "iota":
            number = max(op.gives[0].shape) - 1
        sources = self._sources(op, scope)
        for name, kind in zip(op.results, op.gives, strict=True):
            scope.types[name] = kind
            scope.stands[name] = next(iter(sources), None)
            if scope.stands[name] is None and kind.size:
                scope.stands[name] = self._counter.input(kind)
            if number is not None:
                scope.numbers[name] = number
            elif op.operands and op.operands[0] in scope.numbers:
                scope.numbers[name] = scope.numbers[op.operands[0]]

    def _op(self, op: PphloOp, scope: _Scope, turns: int | None) -> None:
        stands = dict(scope.stands)
        for name in op.operands if op.name in BITWISE else ():
            if name in scope.numbers:
                stands[name] = self._counter.input(scope.types[name], scope.numbers[name])
        takes, made = self._counter.count(op, scope.types, stands)
        for name, kind, stand in zip(op.results, op.gives, made, strict=True):
            scope.types[name], scope.stands[name] = kind, stand
        elements = max((kind.size for kind in op.gives), default=0)
        if takes is not None and not takes.messages and not takes.seconds:
            return
        self.rows.append(Row(op.name, self._lines.get(id(op), 0), elements, turns, takes))

    def _loop(self, op: PphloOp, scope: _Scope, turns: int | None) -> None:
        """Count the first turn, then the others, for which values may be stored otherwise."""
        again = turns_of(op, scope.numbers)
        inner = scope.inner()
        for mine, initial in zip(op.arguments, op.operands, strict=True):
            inner.types[mine], inner.stands[mine] = scope.types[initial], scope.stands[initial]
        if again is None or turns is None:
            self._turn(op, inner, None)
        elif again:
            self._turn(op, inner, turns)
            if again > 1:
                self._turn(op, inner, turns * (again - 1))
        for name, kind, mine in zip(op.results, op.gives, op.arguments, strict=True):
            scope.types[name], scope.stands[name] = kind, inner.stands[mine]

    def _turn(self, op: PphloOp, scope: _Scope, turns: int | None) -> None:
        condition, body = op.regions
        self._region(condition, scope.inner(), turns)
        within = scope.inner()
        self._region(body, within, turns)
        for mine, left in zip(op.arguments, body.returns, strict=True):
            scope.stands[mine] = within.stands[left]

    def _branches(self, op: PphloOp, scope: _Scope, turns: int | None) -> None:
        for region in op.regions:
            within = scope.inner()
            self._region(region, within, turns)
            for name, kind, left in zip(op.results, op.gives, region.returns, strict=True):
                scope.types[name], scope.stands[name] = kind, within.stands[left]


def turns_of(op: PphloOp, numbers: Mapping[str, int]) -> int | None:
    """Return how often a loop turns that counts from one constant to another.

    Args:
        op: the loop.
        numbers: the integers that are known before it.
    """
    condition, body = op.regions
    inner = dict(numbers)
    inner |= _constants(condition)
    compared = next((each for each in condition.ops if each.name == "less"), None)
    if compared is None or condition.returns != compared.results[:1]:
        return None
    counter, limit = compared.operands
    if counter not in op.arguments:
        return None
    position = op.arguments.index(counter)
    steps = dict(numbers) | _constants(body)
    adding = next(
        (e for e in body.ops if e.results[:1] == body.returns[position : position + 1]), None
    )
    begin = numbers.get(op.operands[position])
    if adding is None or adding.name != "add" or adding.operands[0] != counter:
        return None
    end, step = _resolved(limit, condition, inner), _resolved(adding.operands[1], body, steps)
    if begin is None or end is None or not step or step < 0:
        return None
    return max(0, -(-(end - begin) // step))


def _constants(region: PphloRegion) -> dict[str, int]:
    numbers = {}
    for op in region.ops:
        number = _largest(op.text) if op.name == "constant" else None
        if number is not None:
            numbers[op.results[0]] = number
    return numbers


def _resolved(name: str, region: PphloRegion, numbers: Mapping[str, int]) -> int | None:
    """Return an integer that a region moves from elsewhere."""
    for op in reversed(region.ops):
        if name in op.results and op.name in FREE and op.operands:
            name = op.operands[0]
    return numbers.get(name)


def _largest(constant: str) -> int | None:
    """Return the largest integer of a constant; ``None`` if it has others than integers."""
    match = _INTEGERS.search(constant)
    return max(map(int, re.findall(r"-?\d+", match[1]))) if match else None

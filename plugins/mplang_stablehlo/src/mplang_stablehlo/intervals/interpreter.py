"""Abstract interpretation of StableHLO: an interval per value instead of its elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jaxlib.mlir import ir

from mplang_core.interval import UNKNOWN, Interval
from mplang_stablehlo.custom_calls import target_of
from mplang_stablehlo.intervals.element_types import element_type_of
from mplang_stablehlo.intervals.precision import Precision

__all__ = ["Interpreter", "Rule", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """An op of the module, and the intervals of all times that it ran.

    Attributes:
        name: of the op, without a prefix, or of the custom call; of several ops that are one
            function, the function's: ``logistic``.
        op: the op.
        operands: the intervals that it took.
        results: those that it gave.
    """

    name: str
    op: ir.Operation
    operands: tuple[Interval, ...]
    results: tuple[Interval, ...]

    def __or__(self, other: Step) -> Step:
        return Step(
            self.name,
            self.op,
            tuple(a | b for a, b in zip(self.operands, other.operands, strict=True)),
            tuple(a | b for a, b in zip(self.results, other.results, strict=True)),
        )


class Interpreter:
    """Runs blocks on intervals.

    Args:
        precision: of the engine.

    Attributes:
        steps: what ran, in the order of first runs.
        op_count: how many ops ran.
    """

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self.steps: dict[ir.Operation, Step] = {}
        self.op_count = 0
        self._values: dict[ir.Value, Interval] = {}
        self._merged: dict[ir.Operation, tuple[str, Interval]] = {}

    def block(self, block: ir.Block, arguments: Sequence[Interval]) -> list[Interval]:
        """Run a block; return what its last op gives back."""
        self._values.update(zip(block.arguments, arguments, strict=True))
        *ops, end = block.operations
        for op in ops:
            self._run(op.operation)
        return [self[value] for value in end.operation.operands]

    def __getitem__(self, value: ir.Value) -> Interval:
        """Return the interval of a value that was computed."""
        return self._values[value]

    def merge(
        self, op: ir.Operation, name: str, operand: Interval, parts: Sequence[ir.Operation]
    ) -> None:
        """Have the step of an op be one of a function, and leave out those of its parts."""
        self._merged[op] = name, operand
        for part in parts:
            self.steps.pop(part, None)

    def _run(self, op: ir.Operation) -> None:
        self.op_count += 1
        operands = [self[value] for value in op.operands]
        results = self._results(op, operands)
        self._values.update(zip(op.results, results, strict=True))
        name = target_of(op) or str(op.name).removeprefix("stablehlo.")
        step = Step(name, op, tuple(operands), tuple(results))
        if op in self._merged:
            name, operand = self._merged[op]
            step = Step(name, op, (operand,), tuple(results))
        self.steps[op] = self.steps[op] | step if op in self.steps else step

    def _results(self, op: ir.Operation, operands: Sequence[Interval]) -> Sequence[Interval]:
        from mplang_stablehlo.intervals.rules import RULES

        kinds = [element_type_of(value) for value in op.results]
        rule = RULES.get(target_of(op) or op.name.removeprefix("stablehlo."))
        real = all(kind.is_float or kind.is_integer for kind in kinds)
        found = rule(self, op, operands) if rule is not None and real else [UNKNOWN] * len(kinds)
        return [
            kind.limits if interval.open and kind.is_small else interval
            for kind, interval in zip(kinds, found, strict=True)
        ]


Rule: TypeAlias = Callable[[Interpreter, ir.Operation, Sequence[Interval]], Sequence[Interval]]
"""Gives the intervals of the results for those of the operands."""

Rules: TypeAlias = Mapping[str, Rule]

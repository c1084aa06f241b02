"""Abstract interpreter of StableHLO over intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.custom_calls import target_of
from mplang_stablehlo.intervals.element_types import element_type_of
from mplang_stablehlo.intervals.precision import Precision


@dataclass(frozen=True, slots=True)
class Step:
    """Op of the module, with the join of its intervals over all executions.

    Attributes:
        name: of the op, without a prefix, or of the custom call; of the function, ``logistic``, if
            several ops were merged.
        op: the op.
        operands: the intervals of its operands.
        results: the intervals of its results.
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
    """Abstract interpreter that runs blocks on intervals.

    Args:
        precision: of the engine.
        rules: the rule of each op and custom call, by name.

    Attributes:
        steps: the executed ops, in the order of their first execution.
        op_count: the number of executions.
    """

    def __init__(self, precision: Precision, rules: Rules) -> None:
        self.precision = precision
        self._rules = rules
        self.steps: dict[ir.Operation, Step] = {}
        self.op_count = 0
        self._values: dict[ir.Value, Interval] = {}
        self._merged: dict[ir.Operation, tuple[str, Interval]] = {}

    def block(self, block: ir.Block, arguments: Sequence[Interval]) -> list[Interval]:
        """Run a block.

        Args:
            block: the block.
            arguments: the interval of each argument.

        Returns:
            The interval of each operand of its terminator.
        """
        self._values.update(zip(block.arguments, arguments, strict=True))
        *ops, end = block.operations
        for op in ops:
            self._run(op.operation)
        return [self[value] for value in end.operation.operands]

    def __getitem__(self, value: ir.Value) -> Interval:
        """Return the interval of a computed value."""
        return self._values[value]

    def __setitem__(self, value: ir.Value, interval: Interval) -> None:
        self._values[value] = interval

    def of_rule(self, op: ir.Operation, operands: Sequence[Interval]) -> Sequence[Interval]:
        """Return what the rule of an op tells of its results; unknown if it has none.

        Args:
            op: the op.
            operands: the intervals of its operands.

        Returns:
            An interval per result, before its type is looked at.
        """
        kinds = [element_type_of(value) for value in op.results]
        rule = self._rules.get(target_of(op) or op.name.removeprefix("stablehlo."))
        real = all(kind.is_float or kind.is_integer for kind in kinds)
        return rule(self, op, operands) if rule is not None and real else [UNKNOWN] * len(kinds)

    def merge(
        self, op: ir.Operation, name: str, operand: Interval, parts: Sequence[ir.Operation]
    ) -> None:
        """Merge the steps of several ops into one function.

        Args:
            op: the last op.
            name: of the function.
            operand: the interval of its operand.
            parts: the other ops, whose steps are dropped.
        """
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
        kinds = map(element_type_of, op.results)
        return [
            kind.limits if interval.open and kind.is_small else interval
            for kind, interval in zip(kinds, self.of_rule(op, operands), strict=True)
        ]


Rule: TypeAlias = Callable[[Interpreter, ir.Operation, Sequence[Interval]], Sequence[Interval]]
"""Maps intervals of the operands to those of the results."""

Rules: TypeAlias = Mapping[str, Rule]

"""Interval analysis of StableHLO modules. Imports JAX.

Example:
    >>> from mplang_analysis import Interval
    >>> from mplang_stablehlo.module import parse
    >>> module = parse('''module @main {
    ...   func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    ...     %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>
    ...     return %0 : tensor<3xf32>
    ...   }
    ... }''')
    >>> print(*intervals(prepare(module), [Interval(-2, 3)]).results)
    [0, 9]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxlib.mlir import ir
from mplang_analysis import Interval

from mplang_stablehlo.inline import inline
from mplang_stablehlo.intervals.element_types import ElementType, element_type_of
from mplang_stablehlo.intervals.interpreter import Interpreter, Step
from mplang_stablehlo.intervals.precision import FLOATING, Precision, fixed_point
from mplang_stablehlo.intervals.rules import INTERVAL_RULES
from mplang_stablehlo.module import walk

__all__ = [
    "FLOATING",
    "AnalysisResult",
    "Precision",
    "Step",
    "fixed_point",
    "intervals",
    "op_number",
    "prepare",
]

NUMBER = "mplang.number"


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """Intervals of a module's values.

    Attributes:
        results: an interval per result of ``main``.
        steps: the ops with their intervals; :func:`op_number` returns the position of an op in the
            text.
        module: the module of the ops, which keeps them alive.
    """

    results: Sequence[Interval]
    steps: Sequence[Step]
    module: ir.Module


def prepare(module: ir.Module) -> ir.Module:
    """Inline and number the ops of a module, in place.

    Args:
        module: admitted, so without recursion, and of a bounded size.

    Returns:
        The same module.
    """
    _number(module)
    inline(module)
    return module


def intervals(
    module: ir.Module, inputs: Sequence[Interval], precision: Precision = FLOATING
) -> AnalysisResult:
    """Return the intervals of the values in a module.

    Args:
        module: as :func:`prepare` returns it; it may be analyzed any number of times.
        inputs: an interval per argument of ``main``.
        precision: the error of the engine's results.

    Returns:
        The intervals of all results and ops.
    """
    (main,) = module.body.operations
    run = Interpreter(precision, INTERVAL_RULES)
    block = main.operation.regions[0].blocks[0]
    kinds = [element_type_of(value) for value in block.arguments]
    arguments = [_argument(kind, given) for kind, given in zip(kinds, inputs, strict=True)]
    return AnalysisResult(run.block(block, arguments), list(run.steps.values()), module)


def _argument(kind: ElementType, given: Interval) -> Interval:
    """Return the interval of an input; bounds of integers become ints, which add exactly."""
    if given.open and kind.is_small:
        return kind.limits
    if kind.is_integer and given.known:
        return Interval(math.floor(given.low), math.ceil(given.high))
    return given


def _number(module: ir.Module) -> None:
    """Attach to each op its position in the text, which inlining keeps."""
    with module.context:
        kind = ir.IntegerType.get_signless(64)
        for number, op in enumerate(walk(module.operation)):
            op.attributes[NUMBER] = ir.IntegerAttr.get(kind, number)


def op_number(op: ir.Operation) -> int:
    """Return the position of an op in the canonical text, in the order of ``walk``."""
    return int(ir.IntegerAttr(op.attributes[NUMBER]).value)

"""Intervals through a StableHLO module. Imports JAX.

Example:
    >>> from mplang_core.interval import Interval
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

from mplang_core.interval import Interval
from mplang_stablehlo.inline import inline
from mplang_stablehlo.intervals.element_types import ElementType, element_type_of
from mplang_stablehlo.intervals.interpreter import Interpreter, Step
from mplang_stablehlo.intervals.precision import FLOATING, Precision, fixed_point
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
    """What is known of a module's values.

    Attributes:
        results: an interval per result of ``main``.
        steps: the ops with their intervals; :func:`op_number` tells which op of the text it is.
        module: where the ops stand; they exist as long as it does.
    """

    results: Sequence[Interval]
    steps: Sequence[Step]
    module: ir.Module


def prepare(module: ir.Module) -> ir.Module:
    """Return a module whose calls are inlined and whose ops have numbers; it is changed for that.

    Args:
        module: admitted, so without circles among its functions, and of a bounded size.
    """
    _number(module)
    inline(module)
    return module


def intervals(
    module: ir.Module, inputs: Sequence[Interval], precision: Precision = FLOATING
) -> AnalysisResult:
    """Return the intervals of the values in a module.

    Args:
        module: as :func:`prepare` gives it; any number of runs may share it.
        inputs: an interval per argument of ``main``.
        precision: how far the results of the engine are from exact ones.
    """
    (main,) = module.body.operations
    run = Interpreter(precision)
    block = main.operation.regions[0].blocks[0]
    kinds = [element_type_of(value) for value in block.arguments]
    arguments = [_argument(kind, given) for kind, given in zip(kinds, inputs, strict=True)]
    return AnalysisResult(run.block(block, arguments), list(run.steps.values()), module)


def _argument(kind: ElementType, given: Interval) -> Interval:
    """Return the interval of an input: of integers in integers, which Python adds up exactly."""
    if given.open and kind.is_small:
        return kind.limits
    if kind.is_integer and given.known:
        return Interval(math.floor(given.low), math.ceil(given.high))
    return given


def _number(module: ir.Module) -> None:
    """Have each op carry its number in the text, also where it is inlined."""
    with module.context:
        kind = ir.IntegerType.get_signless(64)
        for number, op in enumerate(walk(module.operation)):
            op.attributes[NUMBER] = ir.IntegerAttr.get(kind, number)


def op_number(op: ir.Operation) -> int:
    """Return which op of the canonical text it is, in the order of ``walk``."""
    return int(ir.IntegerAttr(op.attributes[NUMBER]).value)

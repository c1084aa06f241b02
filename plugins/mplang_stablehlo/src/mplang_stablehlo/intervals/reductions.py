"""Interval rules for reductions, windows, scatters and contractions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.intervals import arithmetic as exact
from mplang_stablehlo.intervals.element_types import ElementType, element_type_of, shape_of
from mplang_stablehlo.intervals.elementwise import BINARY
from mplang_stablehlo.intervals.interpreter import Interpreter, Rule
from mplang_stablehlo.module import number_columns

ZERO, ONE = Interval(0, 0), Interval(1, 1)
NEUTRAL = {"add": ZERO, "multiply": ONE}


def combined(region: ir.Region) -> str:
    """Return the op that a region applies to its two arguments, if it is the only one."""
    block = region.blocks[0]
    op, *rest = [each.operation for each in block.operations]
    if len(rest) != 1 or len(block.arguments) != 2:
        return ""
    if set(op.operands) != set(block.arguments) or rest[0].operands[0] != op.results[0]:
        return ""
    return str(op.name).removeprefix("stablehlo.")


def _fold(run: Interpreter, region: ir.Region, state: Sequence[Interval]) -> Sequence[Interval]:
    """Return the interval of combining any number of elements in any order."""
    now = list(state)
    for turn in range(2 + 2 * len(now)):
        after = run.block(region.blocks[0], [*now, *now])
        wider = [a | b for a, b in zip(now, after, strict=True)]
        if wider == now:
            return now
        now = [a if a == b else UNKNOWN for a, b in zip(now, wider, strict=True)] if turn else wider
    return [UNKNOWN] * len(now)


def _sum(
    run: Interpreter, kind: ElementType, x: Interval, init: Interval, least: int, most: int
) -> Interval:
    """Return the interval of an initial value plus ``least`` to ``most`` elements."""
    total = exact.add(init, exact.times(x, least) | exact.times(x, most))
    return run.precision.round(kind, total, "add", most)


def _product(
    run: Interpreter, kind: ElementType, x: Interval, init: Interval, least: int, most: int
) -> Interval:
    """Return the interval of an initial value times ``least`` to ``most`` elements."""
    counts = Interval(least, most)
    largest = exact.power(Interval(x.largest, x.largest), counts).high
    low = exact.power(Interval(x.low, x.low), counts).low if x.low >= 0 else -largest
    return run.precision.round(kind, exact.multiply(Interval(low, largest), init), terms=most)


def _reduce(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    dropped = ir.DenseI64ArrayAttr(op.attributes["dimensions"])
    shape = shape_of(op.operands[0])
    count = math.prod(shape[i] for i in dropped)
    return _reduced(run, op, ins, count, count)


def _reduced(
    run: Interpreter, op: ir.Operation, ins: Sequence[Interval], least: int, most: int
) -> Sequence[Interval]:
    """Return the results of an op that combines ``least`` to ``most`` elements per result."""
    half = len(ins) // 2
    name, kind = combined(op.regions[0]), element_type_of(op.results[0])
    x, init = ins[0], ins[half]
    if most == 0:
        return ins[half:]
    if kind.is_float and (x.open or init.open) and half == 1:
        return [UNKNOWN]
    if name == "add" and kind.name != "i1":
        return [_sum(run, kind, x, init, least, most)]
    if name == "multiply" and kind.name != "i1":
        return [_product(run, kind, x, init, least, most)]
    if name in ("maximum", "minimum"):
        return [BINARY[name](kind, x, init)]
    return _fold(run, op.regions[0], [a | b for a, b in zip(ins[:half], ins[half:], strict=True)])


def _reduce_window(
    run: Interpreter, op: ir.Operation, ins: Sequence[Interval]
) -> Sequence[Interval]:
    """Combine the elements of each window; padding adds the initial value again."""
    most = math.prod(ir.DenseI64ArrayAttr(op.attributes["window_dimensions"]))
    least = int(_always_inside(op))
    if len(ins) == 2 and NEUTRAL.get(combined(op.regions[0])) == ins[1]:
        return _reduced(run, op, ins, least, most)
    half = len(ins) // 2
    wider = [a | b for a, b in zip(ins[:half], ins[half:], strict=True)]
    if half == 1 and combined(op.regions[0]) in ("maximum", "minimum"):
        return _reduced(run, op, ins if least else [*wider, *ins[half:]], 1, most)
    return _fold(run, op.regions[0], wider)


def _always_inside(op: ir.Operation) -> bool:
    """Return whether each window covers an element of the operand."""
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["window_dimensions"]))
    padding = number_columns(op, "padding") or [0] * (2 * len(sizes))
    spread = [*number_columns(op, "base_dilations"), *number_columns(op, "window_dilations")]
    sides = zip(sizes, padding[::2], padding[1::2], shape_of(op.operands[0]), strict=True)
    inside = all(0 <= low < size and 0 <= high < size and dim for size, low, high, dim in sides)
    return inside and set(spread) <= {1}


def _scatter(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Combine an element with any number of updates."""
    if len(ins) != 3:
        return [UNKNOWN] * len(op.results)
    x, _, update = ins
    kind = element_type_of(op.results[0])
    if kind.is_float and (x.open or update.open):
        return [UNKNOWN]
    if combined(op.regions[0]) == "add" and kind.name != "i1":
        return [_sum(run, kind, update, x, 0, math.prod(shape_of(op.operands[2])))]
    return _fold(run, op.regions[0], [x | update])


def _select_and_scatter(
    run: Interpreter, op: ir.Operation, ins: Sequence[Interval]
) -> Sequence[Interval]:
    """Scatter each source element to the element that its window selects."""
    _, source, init = ins
    kind = element_type_of(op.results[0])
    if combined(op.regions[1]) != "add" or source.open or init.open:
        return [UNKNOWN]
    return [_sum(run, kind, source, init, 0, math.prod(shape_of(op.operands[1])))]


def _dot_general(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = op.operands
    mine, other = (
        list(numbers.lhs_contracting_dimensions),
        list(numbers.rhs_contracting_dimensions),
    )
    count = math.prod(shape_of(left)[i] for i in mine)
    norm = left == right and mine == other and len(mine) == len(shape_of(left))
    product = exact.square(ins[0]) if norm else exact.multiply(*ins)
    kind = element_type_of(op.results[0])
    if kind.is_float and not (ins[0].known and ins[1].known):
        return [UNKNOWN]
    return [run.precision.round(kind, exact.times(product, count), terms=count)]


def _convolution(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Sum the products of a window, which may extend over the edge."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = shape_of(op.operands[1])
    count = math.prod(kernel) // max(1, kernel[numbers.kernel_output_feature_dimension])
    if not (ins[0].known and ins[1].known):
        return [UNKNOWN]
    total = exact.times(exact.multiply(*ins), count) | ZERO
    return [run.precision.round(element_type_of(op.results[0]), total, terms=count)]


REDUCING: Mapping[str, Rule] = {
    "convolution": _convolution,
    "dot_general": _dot_general,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
}
"""Interval rules by StableHLO op."""

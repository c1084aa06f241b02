"""Interval rules of all ops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.intervals import arithmetic as exact
from mplang_stablehlo.intervals.comparisons import compare
from mplang_stablehlo.intervals.control import CONTROL
from mplang_stablehlo.intervals.element_types import ElementType, element_type_of
from mplang_stablehlo.intervals.elementwise import BINARY, EXACT, UNARY, convert
from mplang_stablehlo.intervals.interpreter import Interpreter, Rule
from mplang_stablehlo.intervals.patterns import comparison, is_own_maximum, logistic_of
from mplang_stablehlo.intervals.reductions import REDUCING
from mplang_stablehlo.intervals.structure import STRUCTURE


def _elementwise(name: str) -> Rule:
    """Return the rule of an elementwise op: the exact result, rounded."""

    def rule(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
        kind = element_type_of(op.results[0])
        if kind.is_float and any(x.open for x in ins):
            return [UNKNOWN]
        found = UNARY[name](kind, *ins) if name in UNARY else BINARY[name](kind, *ins)
        if kind.is_float and name in EXACT:
            return [found]
        return [run.precision.round(kind, found, name)]

    return rule


def _subtract(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    x, kind = ins[0], element_type_of(op.results[0])
    (found,) = _elementwise("subtract")(run, op, ins)
    if not x.known:
        return [found]
    slack = 2 * kind.epsilon * x.largest if kind.is_float and not run.precision.step else 0
    if op.operands[0] == op.operands[1]:
        return [Interval(-slack, slack)]
    if found.high > slack and is_own_maximum(*op.operands):
        return [Interval(found.low, slack)]  # XLA may round x in one use but not in an FMA
    return [found]


def _multiply(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    kind = element_type_of(op.results[0])
    if op.operands[0] == op.operands[1] and ins[0].known:
        return [run.precision.round(kind, exact.square(ins[0]), "multiply")]
    return _elementwise("multiply")(run, op, ins)


def _divide(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    kind = element_type_of(op.results[0])
    merged = logistic_of(op, run.__getitem__) if kind.is_float else None
    if merged is not None:
        x, parts = run[merged[0]], merged[1]
        run.merge(op, "logistic", x, parts)
        return [
            UNKNOWN if x.open else run.precision.round(kind, UNARY["logistic"](kind, x), "logistic")
        ]
    if kind.is_float and run.precision.step:
        return [_divide_in_fixed_point(run, kind, *ins)]
    return _elementwise("divide")(run, op, ins)


def _divide_in_fixed_point(
    run: Interpreter, kind: ElementType, x: Interval, y: Interval
) -> Interval:
    """Multiply by the reciprocal, as SPU does, which is a few steps off."""
    over, step = exact.divide(Interval(1, 1), y), 4 * run.precision.step
    if not over.known or not x.known:
        return UNKNOWN
    reciprocal = Interval(
        max(0.0, over.low - step) if over.low > 0 else over.low - step,
        min(0.0, over.high + step) if over.high < 0 else over.high + step,
    )
    return run.precision.round(kind, exact.multiply(x, reciprocal), "divide")


def _compare(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    total = "compare_type" in op.attributes and "TOTAL" in str(op.attributes["compare_type"])
    same = op.operands[0] == op.operands[1]
    return [compare(comparison(op), *ins, same=same, total=total)]


def _is_finite(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    return [Interval(int(ins[0].known), 1)]


def _convert(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    source, target = element_type_of(op.operands[0]), element_type_of(op.results[0])
    if not (source.is_float or source.is_integer):
        return [UNKNOWN]
    if source == target:
        return ins
    return [run.precision.round(target, convert(source, target, ins[0]), "convert")]


def _reduce_precision(
    run: Interpreter, op: ir.Operation, ins: Sequence[Interval]
) -> Sequence[Interval]:
    """Round to a float of fewer bits; numbers below its range become 0."""
    exponent, mantissa = (
        ir.IntegerAttr(op.attributes[name]).value for name in ("exponent_bits", "mantissa_bits")
    )
    x, largest = ins[0], 2 ** (exponent - 1)
    if not x.known or x.largest >= math.ldexp(1, min(largest, 1023) - 1):
        return [UNKNOWN]
    relative, tiny = math.ldexp(1, -mantissa), math.ldexp(1, 2 - largest)
    return [Interval(x.low - abs(x.low) * relative - tiny, x.high + abs(x.high) * relative + tiny)]


def _bitcast(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    return ins if op.operands[0].type == op.results[0].type else [UNKNOWN]


INTERVAL_RULES: Mapping[str, Rule] = {
    **{name: _elementwise(name) for name in (*UNARY, *BINARY)},
    **STRUCTURE,
    **REDUCING,
    **CONTROL,
    "bitcast_convert": _bitcast,
    "compare": _compare,
    "convert": _convert,
    "divide": _divide,
    "is_finite": _is_finite,
    "multiply": _multiply,
    "reduce_precision": _reduce_precision,
    "subtract": _subtract,
}
"""Interval rules by StableHLO op without prefix, or custom-call target; others give unknown."""

"""Interval rules for ops that move and select elements of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.intervals.constants import interval_of
from mplang_stablehlo.intervals.element_types import element_type_of, shape_of
from mplang_stablehlo.intervals.elementwise import clamp
from mplang_stablehlo.intervals.interpreter import Interpreter, Rule


def _same(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Return all operands unchanged, as of a sort or a barrier."""
    return ins


def _first(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Return the first operand; the others are indices, clamped if out of range."""
    return ins[:1]


def _all(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Return the join of all operands."""
    return [reduce(or_, ins)]


def _first_two(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Return the join of an operand and its update."""
    return [ins[0] | ins[1]]


def _constant(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    kind = element_type_of(op.results[0])
    return [run.precision.constant(kind, interval_of(op.attributes["value"], kind))]


def _iota(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    dimension = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    last = max(0, shape_of(op.results[0])[dimension] - 1)
    return [run.precision.wrap(element_type_of(op.results[0]), Interval(0, last))]


def _select(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    predicate, yes, no = ins
    if predicate.low == predicate.high:
        return [yes if predicate.low else no]
    return [yes | no]


def _clamp(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    if element_type_of(op.results[0]).is_float and any(each.open for each in ins):
        return [UNKNOWN]
    return [clamp(*ins)]


def _pad(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    sides = ("edge_padding_low", "edge_padding_high", "interior_padding")
    padded = any(n > 0 for side in sides for n in ir.DenseI64ArrayAttr(op.attributes[side]))
    return [ins[0] | ins[1] if padded else ins[0]]


def _topk(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    return [ins[0], Interval(0, max(0, shape_of(op.operands[0])[-1] - 1))]


STRUCTURE: Mapping[str, Rule] = {
    "broadcast_in_dim": _first,
    "clamp": _clamp,
    "concatenate": _all,
    "constant": _constant,
    "dynamic_slice": _first,
    "dynamic_update_slice": _first_two,
    "gather": _first,
    "iota": _iota,
    "mhlo.topk": _topk,
    "optimization_barrier": _same,
    "pad": _pad,
    "reshape": _first,
    "reverse": _first,
    "select": _select,
    "slice": _first,
    "sort": _same,
    "transpose": _first,
}
"""Interval rules by StableHLO op."""

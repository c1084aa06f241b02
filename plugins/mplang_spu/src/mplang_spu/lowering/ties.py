"""Pass over comparisons of floats. Imports JAX."""

from __future__ import annotations

import enum

import numpy as np
from jaxlib.mlir import ir

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import direction_of
from mplang_spu.lowering.tables import table_of
from mplang_spu.lowering.term import Term, constant, is_float, numpy_type, replace

DEPTH = 64

STEPS = 4
"""Distance in steps within which computed numbers count as equal."""

SINGLE = 2.0**-22
"""Relative distance from a constant that an op or two in float32 introduce."""

_MOVES = {
    "abs", "broadcast_in_dim", "ceil", "clamp", "concatenate", "constant", "convert",
    "dynamic_slice", "dynamic_update_slice", "floor", "gather", "iota", "maximum", "minimum",
    "negate", "pad", "reshape", "reverse", "round_nearest_afz", "round_nearest_even", "select",
    "sign", "slice", "sort", "transpose",
}  # fmt: skip
"""Ops whose results are elements of their operands, or integers."""


class FloatOrigin(enum.IntEnum):
    """Origin of a float; of several origins, the largest counts."""

    EXACT = 0
    """A constant, an integer, or selected from such ones."""
    OPERAND = 1
    """An operand, or selected from operands."""
    COMPUTED = 2


def compare_floats(rewriter: Rewriter) -> None:
    """Compare with a tolerance.

    A computed median is some steps off the element that it equals, and so is
    ``(x - low) / (high - low)`` off 1: ``x >= jnp.median(x)`` would exclude the median. Operands
    may have been computed by an earlier run. As they may be data, too, there is no tolerance
    relative to a constant: 1000.01 is above 1000.
    """
    known: dict[ir.Value, FloatOrigin] = {}
    for op in rewriter.ops("compare"):
        if not is_float(op.operands[0]):
            continue
        origin = max(_origin(value, known) for value in op.operands)
        if origin is not FloatOrigin.EXACT:
            with rewriter.before(op):
                x, y = map(Term, op.operands)
                replace(op, _compared(direction_of(op), x, y, _band(rewriter, op, origin)))


def _compared(direction: str, x: Term, y: Term, band: Term) -> Term:
    match direction:
        case "GE":
            return x + band >= y
        case "LE":
            return y + band >= x
        case "GT":
            return x > y + band
        case "LT":
            return y > x + band
    apart = (x > y + band) | (y > x + band)
    return apart if direction == "NE" else ~apart


def _origin(value: ir.Value, known: dict[ir.Value, FloatOrigin], depth: int = DEPTH) -> FloatOrigin:
    if value not in known:
        known[value] = _origin_of(value, known, depth - 1) if depth > 0 else FloatOrigin.COMPUTED
    return known[value]


def _origin_of(value: ir.Value, known: dict[ir.Value, FloatOrigin], depth: int) -> FloatOrigin:
    op = value.owner
    if not is_float(value):
        return FloatOrigin.EXACT
    if not isinstance(op, ir.Operation):
        is_operand = op.owner.operation.name == "func.func"
        return FloatOrigin.OPERAND if is_operand else FloatOrigin.COMPUTED
    if op.name.removeprefix("stablehlo.") not in _MOVES and not _chooses(op):
        return FloatOrigin.COMPUTED
    return max((_origin(each, known, depth) for each in op.operands), default=FloatOrigin.EXACT)


def _chooses(op: ir.Operation) -> bool:
    """Return whether an op reduces by maximum or minimum."""
    if op.name not in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return False
    first = op.regions[0].blocks[0].operations[0].operation
    return first.name in ("stablehlo.maximum", "stablehlo.minimum")


def _band(rewriter: Rewriter, op: ir.Operation, origin: FloatOrigin) -> Term:
    """Return the tolerance: absolute in steps; of computed numbers, also relative to a constant."""
    x, step = Term(op.operands[0]), rewriter.target.step
    relative = 8 * step if numpy_type(x.kind.element_type).itemsize == 8 else max(8 * step, SINGLE)
    relative *= origin is FloatOrigin.COMPUTED
    tables = [table for table in map(table_of, op.operands) if table is not None]
    band = STEPS * step + relative * np.abs(tables[0] if tables else 0.0)
    return (
        rewriter.public(float(band), x.kind.element_type)
        if band.ndim == 0
        else constant(x.kind, band)
    )

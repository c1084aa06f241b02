"""Pass over comparisons of floats. Imports JAX."""

from __future__ import annotations

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


def compare_floats(rewriter: Rewriter) -> None:
    """Compare computed numbers with a tolerance.

    A computed median is some steps off the element that it equals, and so is
    ``(x - low) / (high - low)`` off 1: ``x >= jnp.median(x)`` would exclude the median. Operands,
    and elements selected from them, are compared exactly.
    """
    known: dict[ir.Value, bool] = {}
    for op in rewriter.ops("compare"):
        if not is_float(op.operands[0]):
            continue
        if not all(_is_exact(value, known) for value in op.operands):
            with rewriter.before(op):
                x, y = map(Term, op.operands)
                replace(op, _compared(direction_of(op), x, y, _band(rewriter, op)))


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


def _is_exact(value: ir.Value, known: dict[ir.Value, bool], depth: int = DEPTH) -> bool:
    """Return whether a float is an operand, a constant, integral, or selected from such ones."""
    if value not in known:
        known[value] = depth > 0 and _has_exact_operands(value, known, depth - 1)
    return known[value]


def _has_exact_operands(value: ir.Value, known: dict[ir.Value, bool], depth: int) -> bool:
    op = value.owner
    if not is_float(value):
        return True
    if not isinstance(op, ir.Operation):
        return bool(op.owner.name == "func.func")
    name = op.name.removeprefix("stablehlo.")
    return (name in _MOVES or _chooses(op)) and all(
        _is_exact(each, known, depth) for each in op.operands
    )


def _chooses(op: ir.Operation) -> bool:
    """Return whether an op reduces by maximum or minimum."""
    if op.name not in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return False
    first = op.regions[0].blocks[0].operations[0].operation
    return first.name in ("stablehlo.maximum", "stablehlo.minimum")


def _band(rewriter: Rewriter, op: ir.Operation) -> Term:
    """Return the tolerance: absolute in steps, plus relative to a constant operand."""
    x, step = Term(op.operands[0]), rewriter.target.step
    relative = 8 * step if numpy_type(x.kind.element_type).itemsize == 8 else max(8 * step, SINGLE)
    tables = [table for table in map(table_of, op.operands) if table is not None]
    band = STEPS * step + relative * np.abs(tables[0] if tables else 0.0)
    return (
        rewriter.public(float(band), x.kind.element_type)
        if band.ndim == 0
        else constant(x.kind, band)
    )

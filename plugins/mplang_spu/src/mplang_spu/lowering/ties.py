"""Pass over comparisons of floats. Imports JAX."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir import ir

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import direction_of
from mplang_spu.lowering.tables import table_of
from mplang_spu.lowering.term import Term, constant, is_float, numpy_type, replace

__all__ = ["compare_floats"]

DEPTH = 64

STEPS = 4
"""How many steps apart computed numbers still count as equal."""

SINGLE = 2.0**-22
"""How far apart they are, relative to a constant, that are one in float32 after a step or two."""

_MOVES = {
    "abs", "broadcast_in_dim", "ceil", "clamp", "concatenate", "constant", "convert",
    "dynamic_slice", "dynamic_update_slice", "floor", "gather", "iota", "maximum", "minimum",
    "negate", "pad", "reshape", "reverse", "round_nearest_afz", "round_nearest_even", "select",
    "sign", "slice", "sort", "transpose",
}  # fmt: skip
"""Ops whose results are among the numbers that they take, or whole."""


def compare_floats(rewriter: Rewriter) -> None:
    """Let computed numbers that are nearly equal count as equal.

    A median is some steps beside the number that it is, and so is ``(x - low) / (high - low)``
    beside 1: ``x >= jnp.median(x)`` would leave the median out. Operands, and what is chosen
    among them, are compared as they are.
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
    """Tell whether a float is an operand, a constant or whole, or chosen among such ones."""
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
    """Tell whether an op reduces by a maximum or a minimum."""
    if op.name not in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return False
    first = op.regions[0].blocks[0].operations[0].operation
    return first.name in ("stablehlo.maximum", "stablehlo.minimum")


def _band(rewriter: Rewriter, op: ir.Operation) -> Term:
    """Return how far apart numbers are that count as equal: relative where one is a constant."""
    x, step = Term(op.operands[0]), rewriter.target.step
    relative = 8 * step if numpy_type(x.kind.element_type).itemsize == 8 else max(8 * step, SINGLE)
    tables = [table for table in map(table_of, op.operands) if table is not None]
    band = STEPS * step + relative * np.abs(tables[0] if tables else 0.0)
    return (
        rewriter.public(float(band), x.kind.element_type)
        if band.ndim == 0
        else constant(x.kind, band)
    )

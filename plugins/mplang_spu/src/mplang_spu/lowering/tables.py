"""Constant folding of small float tables, such as the steps of ``linspace``. Imports JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import number_columns, walk

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import before, constant, is_float

_EXACT = "mplang.exact"

MAX_SIZE = 4096
"""Maximum number of elements of a folded table; larger ones are computed on SPU."""

Table: TypeAlias = np.ndarray[Any, Any]

_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs, "add": np.add, "ceil": np.ceil, "cosine": np.cos, "divide": np.divide,
    "exponential": np.exp, "exponential_minus_one": np.expm1, "floor": np.floor, "log": np.log,
    "log_plus_one": np.log1p, "maximum": np.maximum, "minimum": np.minimum,
    "multiply": np.multiply, "negate": np.negative, "power": np.power, "sign": np.sign,
    "sine": np.sin, "sqrt": np.sqrt, "subtract": np.subtract, "tanh": np.tanh,
}  # fmt: skip


def fold_tables(rewriter: Rewriter) -> None:
    """Fold tables of floats in float64, and round them once, to the fixed point.

    Computed op by op on SPU each number is some steps off, so numbers at the edge of a histogram
    bin fall on either side.
    """
    known: dict[ir.Value, Table] = {}
    for op in list(walk(rewriter.main)):
        if len(op.results) != 1 or op.regions or not is_float(op.results[0]):
            continue
        with np.errstate(all="ignore"):
            found = _known(op, known)
        if found is not None and np.isfinite(found).all():
            known[op.results[0]] = found
    for value, table in known.items():
        op = value.owner
        if op.operands and not all(_is_folded(use.owner, known) for use in value.uses):
            with before(op):
                value.replace_all_uses_with(_constant(rewriter, value, table))


def _is_folded(op: ir.Operation, known: Mapping[ir.Value, Table]) -> bool:
    return any(value in known for value in op.operation.results)


def erase_exact_values(rewriter: Rewriter) -> None:
    """Erase the float64 values that :func:`fold_tables` attached to constants."""
    for op in walk(rewriter.main):
        if _EXACT in op.attributes:
            del op.attributes[_EXACT]


def table_of(value: ir.Value) -> Table | None:
    """Return a small constant in float64; ``None`` for any other value."""
    number = splat_of(value)
    if number is not None:
        return np.asarray(number, np.float64)
    op = value.owner
    if not isinstance(op, ir.Operation) or _size(value) > MAX_SIZE:
        return None
    if _EXACT in op.attributes:
        return np.asarray(ir.DenseElementsAttr(op.attributes[_EXACT]))
    if op.name == "stablehlo.constant":
        return np.asarray(ir.DenseElementsAttr(op.attributes["value"])).astype(np.float64)
    if op.name == "stablehlo.iota":
        along, shape = ir.IntegerAttr(op.attributes["iota_dimension"]).value, _shape(value)
        return np.asarray(np.indices(shape)[along], np.float64)
    return None


def _known(op: ir.Operation, known: Mapping[ir.Value, Table]) -> Table | None:
    name = op.name.removeprefix("stablehlo.")
    if name in ("constant", "iota"):
        return table_of(op.results[0])
    if _size(op.results[0]) > MAX_SIZE:
        return None
    operands = [known[each] if each in known else table_of(each) for each in op.operands]
    tables = [each for each in operands if each is not None]
    if not tables or len(tables) < len(operands):
        return None
    if name == "concatenate":
        whole = [np.broadcast_to(t, _shape(v)) for t, v in zip(tables, op.operands, strict=True)]
        return np.concatenate(whole, ir.IntegerAttr(op.attributes["dimension"]).value)
    found = _moved(op, name, tables[0])
    if found is None and name in _ELEMENTWISE:
        found = _ELEMENTWISE[name](*tables)
    return found


def _moved(op: ir.Operation, name: str, table: Table) -> Table | None:
    result = op.results[0]
    if name == "convert":
        return table
    if name in ("broadcast_in_dim", "reshape") and table.ndim == 0:
        return table
    if name == "reshape":
        return table.reshape(_shape(result))
    if name == "broadcast_in_dim":
        shape = [1] * len(_shape(result))
        for axis, size in zip(number_columns(op, "broadcast_dimensions"), table.shape, strict=True):
            shape[axis] = size
        return np.broadcast_to(table.reshape(shape), _shape(result))
    return None


def _constant(rewriter: Rewriter, value: ir.Value, table: Table) -> ir.Value:
    step = rewriter.target.step
    steps = np.abs(table) / step
    held = (steps > 2.0**10) & (steps < 2.0**52)  # exact in float64, nearly exact in fixed point
    rounded = np.where(held, np.rint(table / step) * step, table)
    made = constant(value.type, rounded).value
    whole = np.broadcast_to(table, _shape(value)).astype(np.float64, order="C")
    made.owner.attributes[_EXACT] = ir.DenseElementsAttr.get(whole)
    return made


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _size(value: ir.Value) -> int:
    return math.prod(_shape(value))

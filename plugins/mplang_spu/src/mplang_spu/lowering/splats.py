"""Constant folding of splats: constants with one number in all elements. Imports JAX."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import number_columns, walk

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.term import before, is_float, numpy_type, splat

Splat: TypeAlias = Any
"""NumPy scalar."""

_COMPARE = {"EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le,
            "GT": operator.gt, "GE": operator.ge}  # fmt: skip

_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs, "add": np.add, "and": np.bitwise_and, "ceil": np.ceil, "exponential": np.exp,
    "floor": np.floor, "is_finite": np.isfinite, "log": np.log, "maximum": np.maximum,
    "minimum": np.minimum, "multiply": np.multiply, "negate": np.negative,
    "not": np.invert, "or": np.bitwise_or, "power": np.power, "sign": np.sign,
    "sqrt": np.sqrt, "subtract": np.subtract,
}  # fmt: skip

MOVES = {"broadcast_in_dim", "reshape", "reverse", "slice", "transpose"}


def splat_of(value: ir.Value) -> Splat | None:
    """Return the number of a splat constant; ``None`` for any other value."""
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.constant":
        return None
    data = op.attributes["value"]
    if not isinstance(data, ir.DenseElementsAttr) or not data.is_splat:
        return None
    kind, number = dtype_of(value), data.get_splat_value().value
    return kind.type(number % (1 << 8 * kind.itemsize) if kind.kind == "u" else number)


def direction_of(op: ir.Operation) -> str:
    """Return the direction of a comparison: ``LT``, ``EQ``, …."""
    return str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")


def dtype_of(value: ir.Value) -> np.dtype[Any]:
    """Return NumPy's type of the elements of a tensor."""
    return numpy_type(ir.RankedTensorType(value.type).element_type)


def fold_splats(rewriter: Rewriter) -> None:
    """Fold ops on constants, and tests for NaN and infinity.

    SPU has no NaN and no infinity: ``x != x`` is false, which removes the NaN of ``median``.
    Divisors such as the ``n - ddof`` of a variance become constants.
    """
    for op in list(walk(rewriter.main)):
        if op.name == "stablehlo.constant" or not op.name.startswith("stablehlo."):
            continue
        if len(op.results) != 1:
            continue
        with np.errstate(all="ignore"):
            found = _chosen(op) or _known(op)
        if found is None:
            continue
        if not isinstance(found, ir.Value):
            with before(op):
                found = splat(op.results[0].type, found).value
        op.results[0].replace_all_uses_with(found)


def drop_unused(rewriter: Rewriter) -> None:
    """Erase ops that no result depends on (dead-code elimination)."""
    blocks = [rewriter.main.regions[0].blocks[0]]
    while blocks:
        for op in reversed([op.operation for op in blocks.pop().operations]):
            if op.results and not any(True for value in op.results for _ in value.uses):
                op.erase()
                continue
            blocks += [block for region in op.regions for block in region.blocks]


def _chosen(op: ir.Operation) -> ir.Value | None:
    """Return the operand that a select gives, if its condition is constant."""
    if op.name != "stablehlo.select":
        return None
    condition = splat_of(op.operands[0])
    return None if condition is None else op.operands[1 if condition else 2]


def _known(op: ir.Operation) -> Splat | None:
    name = op.name.removeprefix("stablehlo.")
    if name == "compare":
        return _compared(op)
    if name == "is_finite":
        return np.True_
    splats: list[Splat] = [splat_of(value) for value in op.operands]
    if not splats or any(each is None for each in splats):
        return None
    if name in MOVES:
        return splats[0]
    if name == "reduce":
        return _reduced(op, *splats)
    if name == "convert":
        return _converted(splats[0], op.results[0])
    if name == "divide":
        return np.divide(*splats) if is_float(op.results[0]) else None
    if name == "power" and not is_float(op.results[0]):
        return None
    return _ELEMENTWISE[name](*splats) if name in _ELEMENTWISE else None


def _compared(op: ir.Operation) -> Splat | None:
    how = direction_of(op)
    first, second = op.operands
    if first == second:
        return np.bool_(how in ("EQ", "LE", "GE"))
    known: list[Splat] = [splat_of(first), splat_of(second)]
    if known[0] is not None and known[1] is not None:
        return np.bool_(_COMPARE[how](*known))
    infinite = any(each is not None and is_float(first) and np.isinf(each) for each in known)
    return np.bool_(how == "NE") if infinite and how in ("EQ", "NE") else None


def _converted(number: Splat, result: ir.Value) -> Splat | None:
    kind = dtype_of(result)
    if kind.kind != "f" and not np.isfinite(number):
        return None
    return number.astype(kind)


def _reduced(op: ir.Operation, number: Splat, start: Splat) -> Splat | None:
    """Return the result of reducing equal numbers by one op."""
    body = [inner.operation for inner in op.regions[0].blocks[0].operations]
    name = body[0].name.removeprefix("stablehlo.")
    shape, axes = ir.RankedTensorType(op.operands[0].type).shape, number_columns(op, "dimensions")
    if 0 in shape:
        return start
    if len(body) != 2 or name not in ("add", "and", "or", "maximum", "minimum"):
        return None
    if name != "add":
        return _ELEMENTWISE[name](number, start)
    total = number.item() * math.prod(shape[axis] for axis in axes) + start.item()
    kind = number.dtype
    fits = kind.kind == "f" or (
        kind.kind in "iu" and np.iinfo(kind).min <= total <= np.iinfo(kind).max
    )
    return kind.type(total) if fits else None

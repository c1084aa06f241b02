"""Sign analysis: values that are never negative or never positive. Imports JAX."""

from __future__ import annotations

import math

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import combined, number_columns

from mplang_spu.lowering.splats import Splat, splat_of
from mplang_spu.lowering.term import made_by

_NEVER = {"abs", "exponential", "logistic", "sqrt", "rsqrt"}
_KEEP = {"broadcast_in_dim", "reshape", "slice", "transpose", "reverse", "add", "divide",
         "minimum", "concatenate", "dot_general", "multiply", "sqrt"}  # fmt: skip
_DEPTH = 20


def never_negative(value: ir.Value, depth: int = _DEPTH) -> bool:
    """Return whether a value is provably zero or more.

    Args:
        value: a tensor.
        depth: how many ops to look back.

    Returns:
        ``True`` if it is; ``False`` if unknown.
    """
    number = splat_of(value)
    if number is not None:
        return bool(number >= 0)
    op = value.owner
    if not isinstance(op, ir.Operation) or depth == 0:
        return False
    name, operands = op.name.removeprefix("stablehlo."), list(op.operands)
    if name in _NEVER or (name == "multiply" and operands[0] == operands[1]):
        return True
    if name == "maximum":
        return any(never_negative(operand, depth - 1) for operand in operands)
    if name == "select":
        operands = operands[1:]
    elif name == "reduce":
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        if body[0] not in ("stablehlo.add", "stablehlo.maximum") or len(body) != 2:
            return False
    elif name not in _KEEP:
        return False
    return all(never_negative(operand, depth - 1) for operand in operands)


def never_positive(value: ir.Value) -> bool:
    """Return whether a value is provably zero or less, as ``x - max(x)`` of a softmax."""
    op = value.owner
    if not isinstance(op, ir.Operation):
        return False
    if op.name == "stablehlo.negate":
        return never_negative(op.operands[0])
    if op.name == "stablehlo.multiply":
        signs = [(never_negative(x), never_positive(x)) for x in op.operands]
        return any(signs[i][0] and signs[1 - i][1] for i in (0, 1))
    if op.name == "stablehlo.constant":
        number = splat_of(value)
        return number is not None and bool(number <= 0)
    return op.name == "stablehlo.subtract" and bool(_axes_of_largest(*reversed(op.operands)))


def terms_of_softmax(value: ir.Value) -> int | None:
    """Return how many terms a sum of ``exp(x - max(x))`` over the axes of the maximum has.

    Of these one is 1, and none is more.

    Args:
        value: such a sum, which may have been broadcast.

    Returns:
        The number of terms; ``None`` for any other value.
    """
    while (moved := made_by(value, "broadcast_in_dim", "reshape")) is not None:
        value = moved.operands[0]
    total = made_by(value, "reduce")
    if total is None or combined(total.regions[0]) != "add" or splat_of(total.operands[1]) != 0:
        return None
    power = made_by(total.operands[0], "exponential")
    rest = None if power is None else made_by(power.operands[0], "subtract")
    if rest is None:
        return None
    x, largest = rest.operands
    axes = list(number_columns(total, "dimensions"))
    if axes != _axes_of_largest(largest, x, exactly=True):
        return None
    shape: list[int] = ir.RankedTensorType(x.type).shape
    return math.prod(shape[axis] for axis in axes)


def _axes_of_largest(value: ir.Value, x: ir.Value, exactly: bool = False) -> list[int] | None:
    """Return the axes over which a value is the maximum of another; ``None`` if it is not.

    Args:
        value: a tensor.
        x: another one.
        exactly: whether it may be no larger than that, by an initial value or another bound.
    """
    axes = list(range(ir.RankedTensorType(value.type).rank))  # axis of x for each axis of the value
    for _ in range(_DEPTH):
        op = value.owner
        if not isinstance(op, ir.Operation):
            return None
        if op.name == "stablehlo.broadcast_in_dim":
            axes = [axes[i] for i in number_columns(op, "broadcast_dimensions")]
            value = op.operands[0]
        elif op.name == "stablehlo.maximum":  # with the initial value
            rest = [each for each in op.operands if splat_of(each) is None]
            bounds = [splat_of(each) for each in op.operands if each not in rest]
            if len(rest) != 1 or (exactly and not all(map(_is_least, bounds))):
                return None
            value = rest[0]
        else:
            reduces = op.name == "stablehlo.reduce"
            if exactly and reduces and not _is_least(splat_of(op.operands[1])):
                return None
            return _axes_of_maximum(op, x, axes) if reduces else None
    return None


def _is_least(number: Splat | None) -> bool:
    """Return whether a number is no larger than any other of its type."""
    return number is not None and bool(number <= np.finfo(number.dtype).min)


def _axes_of_maximum(op: ir.Operation, x: ir.Value, kept: list[int]) -> list[int] | None:
    body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    reduced = list(number_columns(op, "dimensions"))
    rest = [axis for axis in range(ir.RankedTensorType(x.type).rank) if axis not in reduced]
    is_maximum = (
        op.operands[0] == x
        and len(body) == 2
        and body[:1] == ["stablehlo.maximum"]
        and rest == kept
    )
    return reduced if is_maximum else None

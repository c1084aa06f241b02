"""Literals that loops and branches compare with, as SPU has them. Imports JAX.

A literal that is not a multiple of the smallest step is rounded to one, as is the data that it is
compared with: 0.3 equals 0.3 on SPU. In float64, data that came from shares would be below it. One
below the step is 0 on SPU, and equals data that are 0, but never was meant to.
"""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo.ext import walk

_MOVES = {f"stablehlo.{name}" for name in ("broadcast_in_dim", "convert", "reshape")}


def round_compared(module: ir.Module, fxp: int) -> None:
    """Round what comparisons in regions take from outside to multiples of 2^-``fxp``, in place.

    That is literals, and operands of the function, of which the public ones have all digits.
    Comparisons outside of regions have a check of their own, which tells how near is equal.
    """
    (main,) = module.body.operations
    with module.context, ir.Location.unknown():
        for op in list(walk(module.operation)):
            if op.name == "stablehlo.compare" and op.parent != main.operation:
                for i, value in enumerate(op.operands):
                    if _comes_from_outside(value):
                        with ir.InsertionPoint(op):
                            op.operands[i] = _rounded(value, fxp)


def _rounded(value: ir.Value, fxp: int) -> ir.Value:
    """Return a multiple of the step, but what is below one step as it is: SPU makes it 0."""
    kind = ir.RankedTensorType(value.type)
    scale, one, back = (_splat(number, kind) for number in (2.0**fxp, 1.0, 2.0**-fxp))
    steps = stablehlo.multiply(value, scale)
    whole = stablehlo.subtract(steps, stablehlo.remainder(steps, one))
    less = ir.Attribute.parse("#stablehlo<comparison_direction LT>")
    vanishes = stablehlo.compare(stablehlo.abs(steps), one, less)
    return stablehlo.select(vanishes, value, stablehlo.multiply(whole, back))


def _splat(number: float, kind: ir.RankedTensorType) -> ir.Value:
    attribute = ir.FloatAttr.get(kind.element_type, number)
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, attribute))


def _comes_from_outside(value: ir.Value) -> bool:
    """Return whether floats are a literal or an operand of the function, of any shape."""
    if not isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType):
        return False
    if isinstance(value.owner, ir.Block):
        outer = value.owner.owner.operation
        given = _invariant(value) if outer.name == "stablehlo.while" else None
        return outer.name == "func.func" if given is None else _comes_from_outside(given)
    op = value.owner
    return op.name == "stablehlo.constant" or (
        op.name in _MOVES and _comes_from_outside(op.operands[0])
    )


def _invariant(argument: ir.Value) -> ir.Value | None:
    """Return what a loop begins with, if each turn passes it on."""
    block = argument.owner
    loop, index = block.owner.operation, ir.BlockArgument(argument).arg_number
    body = loop.regions[1].blocks[0]
    *_, end = body.operations
    passed = end.operation.operands[index]
    return loop.operands[index] if passed == body.arguments[index] else None

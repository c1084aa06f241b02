"""Conversion of StableHLO modules to one float width. Imports JAX."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk


def retype(module: ir.Module, width: int) -> None:
    """Change every float of a flat module to one width, in place; literals keep their values.

    Args:
        module: with ``main`` only, see :func:`mplang_stablehlo.ext.inline`.
        width: 32 or 64 bits.

    Example:
        >>> from mplang_stablehlo.module import parse, text_of
        >>> module = parse('''module @main {
        ...   func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
        ...     %cst = stablehlo.constant dense<2.000000e+00> : tensor<2xf32>
        ...     %0 = stablehlo.multiply %arg0, %cst : tensor<2xf32>
        ...     return %0 : tensor<2xf32>
        ...   }
        ... }''')
        >>> retype(module, 64)
        >>> print(text_of(module))
        module @main {
          func.func public @main(%arg0: tensor<2xf64>) -> tensor<2xf64> {
            %cst = stablehlo.constant dense<2.000000e+00> : tensor<2xf64>
            %0 = stablehlo.multiply %arg0, %cst : tensor<2xf64>
            return %0 : tensor<2xf64>
          }
        }
        <BLANKLINE>
    """
    with module.context, ir.Location.unknown():
        kind = ir.F64Type.get() if width == 64 else ir.F32Type.get()
        for op in list(walk(module.operation)):
            _retype(op, kind)
        (main,) = module.body.operations
        _set_signature(main.operation)


def _retype(op: ir.Operation, kind: ir.Type) -> None:
    if op.name == "stablehlo.reduce_precision":
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
        return
    if op.name == "stablehlo.constant" and _is_float(op.results[0]):
        op.attributes["value"] = _literal(op.attributes["value"], kind)
    if "algorithm" in op.attributes:  # of dot_general: the type of its products
        del op.attributes["algorithm"]
    arguments = [
        value for region in op.regions for block in region.blocks for value in block.arguments
    ]
    for value in (*op.results, *arguments):
        if _is_float(value):
            value.set_type(ir.RankedTensorType.get(_shape(value), kind))


def _literal(value: ir.Attribute, kind: ir.Type) -> ir.Attribute:
    dense = ir.DenseElementsAttr(value)
    shaped = ir.RankedTensorType.get(ir.RankedTensorType(dense.type).shape, kind)
    if dense.is_splat:
        number = ir.FloatAttr(dense.get_splat_value()).value
        return ir.DenseElementsAttr.get_splat(shaped, ir.FloatAttr.get(kind, number))
    width = np.float64 if isinstance(kind, ir.F64Type) else np.float32
    numbers = np.array(ir.DenseFPElementsAttr(value)).astype(width)
    return ir.DenseElementsAttr.get(numbers, type=shaped)


def _set_signature(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    *_, end = block.operations
    takes = [value.type for value in block.arguments]
    gives = [value.type for value in end.operation.operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(takes, gives))


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)

"""Execution of StableHLO by jaxlib's interpreter, where XLA would compile longer than it takes.

XLA compiles a thousand ops in a second, and the interpreter takes about a microsecond for an
element. Its crashes end the process: it may only be given what :data:`SAFE` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from numpy.typing import ArrayLike

from mplang_core import TensorType
from mplang_stablehlo.intervals.element_types import element_type_of
from mplang_stablehlo.intervals.patterns import comparison
from mplang_stablehlo.module import parse, walk

Array: TypeAlias = np.ndarray[Any, Any]

_NAMES = """
abs add and atan2 bitcast_convert broadcast_in_dim case cbrt ceil clamp compare concatenate
constant convert convolution cosine count_leading_zeros divide dot_general dynamic_slice
dynamic_update_slice exponential exponential_minus_one floor gather if iota is_finite log
log_plus_one logistic maximum minimum multiply negate not or pad popcnt power reduce reduce_window
remainder reshape return reverse round_nearest_afz round_nearest_even rsqrt scatter select
shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh
transpose xor
"""
SAFE = frozenset(_NAMES.split())
"""Ops that it computes as XLA does, for all numbers, NaN included.

Left out are ``custom_call``, at which it aborts; ``select_and_scatter``, which orders NaN
otherwise; and loops, whose turns nobody knows.
"""

COMPILING = 1e-3  # seconds for an op
ELEMENT = 1e-6  # seconds
QUICKER = 4
"""How much quicker interpreting must seem, since a compiled function may run again."""

_OF_NAN = {"LT": ("EQ", "NE"), "GT": ("NE", "EQ"), "EQ": ("NE", "NE")}
"""How each operand compares with itself where NaN makes a comparison true."""

_FAULTY_ON_INTEGERS = {"stablehlo.divide", "stablehlo.remainder"}  # it crashes at 0
_REDUCING = {"stablehlo.convolution", "stablehlo.reduce_window"}
_PER_PAIR = {"stablehlo.reduce", "stablehlo.scatter", "stablehlo.sort"}
"""Ops whose regions run for each element."""


def interpreted(
    text: str, takes: Sequence[TensorType], gives: Sequence[TensorType]
) -> Callable[..., list[Array]] | None:
    """Return an interpreter of a module, if that is quicker than to compile it.

    Args:
        text: admitted StableHLO.
        takes: the types of its operands.
        gives: the types of its results.

    Returns:
        A function of arrays that returns a list of arrays; ``None`` if XLA is quicker, or the
        module has an op beyond :data:`SAFE`.

    Example:
        >>> body = ["%x0 = stablehlo.add %arg0, %arg0 : tensor<f32>"]
        >>> body += [f"%x{i} = stablehlo.add %x{i-1}, %arg0 : tensor<f32>" for i in range(1, 50)]
        >>> text = f'''module @main {{
        ...   func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {{
        ...     {chr(10).join(body)}
        ...     return %x49 : tensor<f32>
        ...   }}
        ... }}'''
        >>> print(*interpreted(text, [TensorType("f32")], [TensorType("f32")])(np.float32(2)))
        102.0
    """
    module = parse(text)
    ops = [op for op in walk(module.operation) if op.name.startswith("stablehlo.")]
    seconds = sum(map(_elements, ops)) * ELEMENT
    if seconds * QUICKER > len(ops) * COMPILING or not all(map(_is_safe, ops)):
        return None
    for op in ops:
        _order_nan(op)
    _carry_bools_as_bytes(module)

    def run(*args: ArrayLike) -> list[Array]:
        with module.context, ir.Location.unknown():
            arguments = [_attribute(value, kind) for value, kind in zip(args, takes, strict=True)]
            results = stablehlo.eval_module(module, arguments)
            return [
                np.array(value).reshape(kind.shape).astype(kind.dtype.numpy)
                for value, kind in zip(results, gives, strict=True)
            ]

    return run


def _is_safe(op: ir.Operation) -> bool:
    if op.name in _FAULTY_ON_INTEGERS and element_type_of(op.results[0]).is_integer:
        return False
    if _is_total(op) and comparison(op) not in _OF_NAN:
        return False
    if any(0 in ir.RankedTensorType(value.type).shape for value in (*op.operands, *op.results)):
        return False  # of a product it aborts, as it has no index of one
    return op.name.removeprefix("stablehlo.") in SAFE


def _is_total(op: ir.Operation) -> bool:
    """Return whether an op compares floats in an order that has a place for NaN, as sorts do."""
    if op.name != "stablehlo.compare" or "compare_type" not in op.attributes:
        return False
    return "TOTALORDER" in str(op.attributes["compare_type"])


def _order_nan(op: ir.Operation) -> None:
    """Put NaN after all numbers where floats are ordered: the interpreter compares it with none."""
    if not _is_total(op):
        return
    x, y = op.operands
    with op.location, ir.InsertionPoint(op):
        direction = comparison(op)
        by_x, by_y = _OF_NAN[direction]
        of_nan = stablehlo.and_(_compared(x, x, by_x), _compared(y, y, by_y))
        ordered = stablehlo.or_(_compared(x, y, direction), of_nan)
    op.results[0].replace_all_uses_with(ordered)
    op.erase()


def _compared(x: ir.Value, y: ir.Value, direction: str) -> ir.Value:
    return stablehlo.compare(x, y, stablehlo.ComparisonDirectionAttr.get(direction))


def _elements(op: ir.Operation) -> float:
    """Return how many elements are computed for an op."""
    shapes = [ir.RankedTensorType(value.type).shape for value in (*op.operands, *op.results)]
    sizes = [math.prod(shape) for shape in shapes]
    if op.name == "stablehlo.dot_general":
        axes = ir.Attribute(op.attributes["dot_dimension_numbers"])
        inner = stablehlo.DotDimensionNumbers(axes).lhs_contracting_dimensions
        return float(sizes[-1] * max(math.prod(shapes[0][axis] for axis in inner), 1))
    if op.name in _REDUCING:
        return float(sizes[0] * sizes[-1])
    largest = max(sizes, default=0)
    if op.name in _PER_PAIR:
        turns = math.log2(max(largest, 2)) if op.name == "stablehlo.sort" else 1.0
        return float(largest * turns * (1 + sum(1 for _ in walk(op))))
    return float(largest)


def _carry_bools_as_bytes(module: ir.Module) -> None:
    """Make operands and results of bools such of bytes: arrays of bits are packed otherwise."""
    (main,) = module.body.operations
    block = main.operation.regions[0].blocks[0]
    *_, end = block.operations
    with module.context, ir.Location.unknown():
        byte = ir.IntegerType.get_unsigned(8)
        for argument in block.arguments:
            kind = ir.RankedTensorType(argument.type)
            if element_type_of(argument).name == "i1":
                with ir.InsertionPoint.at_block_begin(block):
                    bools = stablehlo.convert(kind, argument)
                argument.replace_all_uses_except(bools, bools.owner)
                argument.set_type(ir.RankedTensorType.get(kind.shape, byte))
        for i, value in enumerate(end.operation.operands):
            if element_type_of(value).name == "i1":
                kind = ir.RankedTensorType.get(ir.RankedTensorType(value.type).shape, byte)
                with ir.InsertionPoint(end):
                    end.operation.operands[i] = stablehlo.convert(kind, value)
        kinds = [
            [value.type for value in values] for values in (block.arguments, end.operation.operands)
        ]
        main.operation.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))


def _attribute(value: ArrayLike, kind: TensorType) -> ir.Attribute:
    array = np.array(value, kind.dtype.numpy, order="C")
    if array.dtype.kind in "bu":
        array = array.astype(np.uint8) if array.dtype.kind == "b" else array
        unsigned = ir.IntegerType.get_unsigned(8 * array.itemsize)
        return ir.DenseElementsAttr.get(array, type=unsigned)
    return ir.DenseElementsAttr.get(array)

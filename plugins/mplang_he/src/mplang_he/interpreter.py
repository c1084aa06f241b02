"""ColumnInterpreter of StableHLO on encrypted columns and plain arrays. Imports JAX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, mul, neg, sub
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo.ext import element_type_of, number_columns, op_number

from mplang_he.algebra import Algebra
from mplang_he.columns import Columns, ColumnsRefusedError, concatenated, dot, plain_columns
from mplang_he.spans import Array, NumberSpan, elementwise, once

Value: TypeAlias = Columns | Array

MAX_PRODUCTS = 1 << 20
"""Products of ciphertexts in one op at most."""

MAX_COLUMNS = 1 << 16

MAX_ELEMENTS = 1 << 21
"""Columns, products and plain numbers of a function at most: some seconds of analysis."""

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class OpError(ValueError):
    """Raised if an op cannot run on ciphertexts.

    Args:
        text: why.
        index: of the op, in the order of ``walk``.
    """

    def __init__(self, text: str, index: int) -> None:
        super().__init__(text)
        self.index = index


class ColumnInterpreter:
    """ColumnInterpreter of a function.

    Args:
        algebra: of the columns, real ones or bounds.
    """

    def __init__(self, algebra: Algebra[Any]) -> None:
        self.algebra = algebra
        self._left = MAX_ELEMENTS

    def spend(self, elements: int) -> None:
        """Count what is computed: products, columns and plain numbers, of bounds.

        Raises:
            ColumnsRefusedError: there are too many.
        """
        self._left -= elements
        if self._left < 0 and self.algebra.bounded:
            raise ColumnsRefusedError(
                f"the function is too large: it computes more than {MAX_ELEMENTS:,} columns, "
                "products and plain numbers"
            )

    def run(self, module: ir.Module, arguments: Sequence[Value]) -> list[Value]:
        """Run a function.

        Args:
            module: with its calls inlined, and its ops numbered.
            arguments: encrypted columns, and plain arrays: of spans where columns are bounds.

        Raises:
            OpError: an op cannot run on ciphertexts, or does not fit.
        """
        (main,) = module.body.operations
        block = main.operation.regions[0].blocks[0]
        values: dict[ir.Value, Value] = dict(zip(block.arguments, arguments, strict=True))
        *ops, end = [op.operation for op in block.operations]
        for op in ops:
            values[op.results[0]] = self._step(op, [values[each] for each in op.operands])
        return [values[each] for each in end.operands]

    def _step(self, op: ir.Operation, operands: Sequence[Value]) -> Value:
        name = str(op.name).removeprefix("stablehlo.")
        try:
            if name not in RULES:
                raise ColumnsRefusedError("ciphertexts have no such op")
            made = RULES[name](self, op, operands)
            self._check(op, made)
        except ValueError as error:
            raise OpError(f"{name}: {error}", op_number(op)) from None
        except OverflowError:
            raise OpError(f"{name}: numbers are larger than a float", op_number(op)) from None
        except (TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
            why = f"{name}: it cannot be computed: {type(error).__name__}"
            raise OpError(why, op_number(op)) from error
        return made

    def _check(self, op: ir.Operation, made: Value) -> None:
        """Check that integers are within their type, where they are bounds."""
        kind = element_type_of(op.results[0])
        elements = made.cells if isinstance(made, Columns) else made
        if isinstance(made, Columns) and made.cells.size > MAX_COLUMNS:
            raise ColumnsRefusedError(
                f"it has {made.cells.size:,} columns, of at most {MAX_COLUMNS:,}"
            )
        elements = once(elements)
        self.spend(elements.size)
        if elements.dtype == object and self.algebra.bounded:
            for each in {id(each): each for each in elements.ravel().tolist()}.values():
                self.algebra.check(each, kind)


Rule: TypeAlias = Callable[[ColumnInterpreter, ir.Operation, Sequence[Value]], Value]

# -- arithmetic


def _add(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    x, y = ins
    if isinstance(x, Columns):
        return _with(run.algebra.add, run.algebra.add_plain, x, y)
    if isinstance(y, Columns):
        return _with(run.algebra.add, run.algebra.add_plain, y, x)
    return _plain(add, x, y)


def _subtract(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    x, y = ins
    if not _encrypted(x) and not _encrypted(y):
        return _plain(sub, x, y)
    if isinstance(x, Columns) and isinstance(y, Columns):
        return _with(run.algebra.sub, run.algebra.add_plain, x, y)
    return _add(run, op, [x, _negate(run, op, [y])])


def _multiply(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    x, y = ins
    if isinstance(x, Columns):
        return _with(run.algebra.multiply, run.algebra.multiply_plain, x, y)
    if isinstance(y, Columns):
        return _with(run.algebra.multiply, run.algebra.multiply_plain, y, x)
    return _plain(mul, x, y)


def _divide(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    x, y = ins
    if isinstance(y, Columns):
        raise ColumnsRefusedError("ciphertexts cannot be divided by")
    if not element_type_of(op.results[0]).is_float:
        raise ColumnsRefusedError("integers are not divided: that rounds")
    return _multiply(run, op, [x, _plain(_inverse, y)])


def _negate(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    (x,) = ins
    return x.map(run.algebra.negate) if isinstance(x, Columns) else _plain(neg, x)


def _convert(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    source, target = element_type_of(op.operands[0]), element_type_of(op.results[0])
    known = (source.is_float or source.is_integer) and (target.is_float or target.is_integer)
    if not known or (source.is_float and not target.is_float) or target.name == "i1":
        raise ColumnsRefusedError(f"numbers are not rounded: {source.name} to {target.name}")
    (x,) = ins
    if isinstance(x, Columns) or not target.is_float:
        return x
    return elementwise(_floats, x)


def _floats(x: Array) -> Array:
    """Return plain numbers as floats, whose size is bounded."""
    if x.dtype != object:
        return x.astype(np.float64)
    made = np.empty(x.shape, object)
    for index, span in np.ndenumerate(x):
        made[index] = NumberSpan(float(span.low), float(span.high))
    return made


def _with(both: Callable[..., Any], plain: Callable[..., Any], x: Columns, y: Value) -> Columns:
    """Combine columns with others, or with plain numbers."""
    if not isinstance(y, Columns):
        columns = plain_columns(y, x.axis)
        return x.like(plain(*pair) for pair in zip(x.cells.ravel().tolist(), columns, strict=True))
    if x.axis != y.axis:
        raise ColumnsRefusedError(
            "rows of one operand are not those of the other: transpose one of them"
        )
    return x.like(both(*pair) for pair in zip(x.cells.flat, y.cells.flat, strict=True))


def _plain(function: Callable[..., Any], *operands: Value) -> Array:
    arrays = [each for each in operands if not isinstance(each, Columns)]
    return elementwise(function, *arrays)


def _inverse(y: Array) -> Array:
    if y.dtype != object:
        return np.asarray(1.0 / y)
    made = np.empty(y.shape, object)
    for index, span in np.ndenumerate(y):
        made[index] = span.inverse()
        if made[index] is None:
            raise ColumnsRefusedError("the divisor may be 0: declare a range without it, by range=")
    return made


def is_zero(number: object) -> bool:
    """Return whether a plain number is 0 for certain."""
    if isinstance(number, NumberSpan):
        return number.low == number.high == 0
    return number == 0


def _encrypted(x: Value) -> bool:
    return isinstance(x, Columns)


# -- sums


def _reduce(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    if len(ins) != 2 or not _adds(op.regions[0].blocks[0]):
        raise ColumnsRefusedError("ciphertexts are added up, and not reduced in another way")
    x, start = ins
    axes = number_columns(op, "dimensions")
    if isinstance(start, Columns):
        raise ColumnsRefusedError("a sum begins with a plain number")
    if not all(x.shape[axis] for axis in axes):
        raise ColumnsRefusedError("there is nothing to add")
    first = start[()]
    if isinstance(x, Columns):
        run.spend(x.cells.size)
        total = x.reduce(axes, run.algebra.total)
        return total if is_zero(first) else total.map(lambda y: run.algebra.add_plain(y, first))
    flat = np.moveaxis(x, axes, range(len(axes)))
    flat = flat.reshape(-1, *flat.shape[len(axes) :])
    run.spend(flat.size)
    return _array(np.add.reduce(flat, 0) + first, x.dtype)


def _adds(block: ir.Block) -> bool:
    """Return whether a region adds its two arguments."""
    ops = [each.operation for each in block.operations]
    if [each.name for each in ops] != ["stablehlo.add", "stablehlo.return"]:
        return False
    added, end = ops
    return list(added.operands) == list(block.arguments) and list(end.operands) == list(
        added.results
    )


def _array(made: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array, also of what NumPy gives without dimensions."""
    result = np.empty(np.shape(made), dtype)
    result[...] = made
    return result


def _dot_general(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    axes = _letters(op)
    x, y = ins
    if not isinstance(x, Columns):
        if not isinstance(y, Columns):
            return _plain_dot(run, axes, x, y)
        axes, x, y = (axes[1], axes[0], axes[2]), y, x
    sizes = dict(zip(axes[0] + axes[1], (*x.shape, *y.shape), strict=True))
    sizes.pop(axes[0][x.axis])
    products = math.prod(sizes.values())
    if products > MAX_PRODUCTS:
        raise ColumnsRefusedError(
            f"it has {products:,} products of columns, of at most {MAX_PRODUCTS:,}"
        )
    if not products:
        raise ColumnsRefusedError("there is nothing to add")
    run.spend(products)
    algebra = run.algebra
    multiply = algebra.multiply if isinstance(y, Columns) else algebra.multiply_plain
    return dot(x, y, axes, algebra.total, multiply)


def _letters(op: ir.Operation) -> tuple[str, str, str]:
    """Return a letter for each axis of both operands and the result, as Einstein's notation has."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    ranks = [len(ir.RankedTensorType(value.type).shape) for value in op.operands]
    letters = iter(LETTERS)
    mine: dict[int, str] = {}
    others: dict[int, str] = {}
    batch = []
    for i, j in zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True):
        mine[i] = others[j] = next(letters)
        batch.append(mine[i])
    for i, j in zip(
        numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True
    ):
        mine[i] = others[j] = next(letters)
    free = []
    for side, rank in ((mine, ranks[0]), (others, ranks[1])):
        for axis in range(rank):
            if axis not in side:
                side[axis] = next(letters)
                free.append(side[axis])
    names = ["".join(side[i] for i in range(len(side))) for side in (mine, others)]
    return names[0], names[1], "".join([*batch, *free])


def _plain_dot(run: ColumnInterpreter, axes: tuple[str, str, str], x: Array, y: Array) -> Array:
    formula = f"{axes[0]},{axes[1]}->{axes[2]}"
    if x.dtype != object:
        return np.asarray(np.einsum(formula, x, y))
    sizes = dict(zip(axes[0] + axes[1], (*x.shape, *y.shape), strict=True))
    run.spend(math.prod(sizes.values()))
    if not all(sizes.values()):
        raise ColumnsRefusedError("there is nothing to add")
    return _array(np.einsum(formula, x, y), x.dtype)


# -- structure


def _constant(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    value, kind = op.attributes["value"], element_type_of(op.results[0])
    readable = isinstance(value, ir.DenseElementsAttr) and (kind.is_float or kind.is_integer)
    if not readable or (kind.name == "i1" and not value.is_splat):
        raise ColumnsRefusedError(f"literals of {kind.name} are not supported")
    shape = tuple(ir.RankedTensorType(op.results[0].type).shape)
    dtype = np.float64 if kind.is_float else np.int64
    if not value.is_splat:
        run.spend(math.prod(shape))
        return run.algebra.plain(np.asarray(value).astype(dtype))
    element = value.get_splat_value()
    number = element if isinstance(element, int | float) else element.value
    if kind.is_integer and number < kind.limits.low:  # MLIR gives unsigned numbers as signed
        number += 1 << kind.bits
    return run.algebra.plain(np.broadcast_to(np.asarray(number, dtype), shape))


def _broadcast(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    (x,) = ins
    shape = tuple(ir.RankedTensorType(op.results[0].type).shape)
    dimensions = number_columns(op, "broadcast_dimensions")
    if isinstance(x, Columns):
        return x.broadcast(shape, dimensions)
    sizes = [1] * len(shape)
    for i, size in zip(dimensions, x.shape, strict=True):
        sizes[i] = size
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    return np.broadcast_to(x.transpose(order).reshape(sizes), shape)


def _reshape(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    return ins[0].reshape(tuple(ir.RankedTensorType(op.results[0].type).shape))


def _transpose(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    return ins[0].transpose(number_columns(op, "permutation"))


def _slice(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    names = ("start_indices", "limit_indices", "strides")
    ends = [number_columns(op, name) for name in names]
    index = [slice(*each) for each in zip(*ends, strict=True)]
    return ins[0].slice(index) if isinstance(ins[0], Columns) else ins[0][tuple(index)]


def _reverse(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    axes = number_columns(op, "dimensions")
    return ins[0].reverse(axes) if isinstance(ins[0], Columns) else np.flip(ins[0], tuple(axes))


def _concatenate(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    parts = [each for each in ins if isinstance(each, Columns)]
    if not parts:
        return np.concatenate([each for each in ins if not isinstance(each, Columns)], axis)
    like = parts[0]
    return concatenated([_sealed(run, each, like) for each in ins], axis)


def _sealed(run: ColumnInterpreter, x: Value, like: Columns) -> Columns:
    """Return plain numbers as columns."""
    if isinstance(x, Columns):
        return x
    zero = run.algebra.zero()
    cells = [run.algebra.add_plain(zero, each) for each in plain_columns(x, like.axis)]
    shape = tuple(size for axis, size in enumerate(x.shape) if axis != like.axis)
    made = np.empty(len(cells), object)
    made[:] = cells
    return Columns(made.reshape(shape), like.axis, like.rows)


def _iota(run: ColumnInterpreter, op: ir.Operation, ins: Sequence[Value]) -> Value:
    kind = ir.RankedTensorType(op.results[0].type)
    axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    run.spend(kind.shape[axis])
    dtype = np.float64 if element_type_of(op.results[0]).is_float else np.int64
    sizes = [-1 if i == axis else 1 for i in range(len(kind.shape))]
    counted = np.arange(kind.shape[axis], dtype=dtype).reshape(sizes)
    return run.algebra.plain(np.broadcast_to(counted, tuple(kind.shape)))


RULES: Mapping[str, Rule] = {
    "add": _add,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "convert": _convert,
    "divide": _divide,
    "dot_general": _dot_general,
    "iota": _iota,
    "multiply": _multiply,
    "negate": _negate,
    "reduce": _reduce,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "subtract": _subtract,
    "transpose": _transpose,
}
"""What each op of StableHLO does; others are refused."""


def all_columns(values: Iterable[Value]) -> list[Any]:
    """Return the columns of encrypted tensors."""
    cells = (each.cells.ravel().tolist() for each in values if isinstance(each, Columns))
    return list(itertools.chain.from_iterable(cells))

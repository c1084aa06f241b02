"""Passes over reads and writes of small tables at secret indices. Imports JAX."""

from __future__ import annotations

import math

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.ext import number_columns

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.secrecy import secret_values
from mplang_spu.lowering.sums import reducer_op, sum_first_axis
from mplang_spu.lowering.term import Term, replace, where

MAX_COMPARED = 10_000_000
"""Maximum number of comparisons that replace a scatter or a gather."""


def add_by_comparison(rewriter: Rewriter) -> None:
    """Rewrite a scatter-add to a small table, as in a histogram, to comparisons of all indices.

    libspu adds one number after the other, each to the whole table. An index out of range adds
    nothing, as StableHLO specifies.
    """
    for op in rewriter.ops("scatter"):
        if len(op.operands) != 3 or reducer_op(op) != "add":
            continue
        table, indices, numbers = map(Term, op.operands)
        how = hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        if len(table.shape) != 1 or len(numbers.shape) != 1 or list(how.update_window_dims):
            continue
        shape = [numbers.shape[0], table.shape[0]]
        if 0 < math.prod(shape) <= MAX_COMPARED:
            with rewriter.before(op):
                rows = Term(hlo.iota(ir.RankedTensorType.get(shape, rewriter.integer), 1))
                here = (
                    indices.reshape(shape[:1]).to(rewriter.integer).spread(shape, [0]).equals(rows)
                )
                spread = numbers.spread(shape, [0])
                added = where(here, spread, spread.like(0))
                replace(op, table + sum_first_axis(rewriter, added))


def scatter_to_integers(rewriter: Rewriter) -> None:
    """Scatter to integers what is scattered to bools at secret indices.

    libspu's compiler makes a loop of it, which reads the table at each index. ABY3 fails where
    that has bools, or integers that are shared as bits, as ``x & 3``; a public zero that is added
    makes libspu share them as integers.
    """
    scatters = rewriter.ops("scatter")
    secrets = secret_values(rewriter.main) if scatters else set()
    for op in scatters:
        element = Term(op.operands[0]).kind.element_type
        if op.operands[1] in secrets and isinstance(element, ir.IntegerType):
            with rewriter.before(op):
                _scatter_as_integers(rewriter, op)


_OF_BOOLS = {"or": "maximum", "add": "maximum", "and": "minimum", "multiply": "minimum",
             "xor": "add"}  # fmt: skip
"""What is done with integers instead of bools; the last bit is what counts."""


def _scatter_as_integers(rewriter: Rewriter, op: ir.Operation) -> None:
    table, indices, numbers = op.operands
    element = Term(table).kind.element_type
    integer = rewriter.integer if element.width == 1 else element
    zero, scalar = rewriter.public(0, integer), ir.RankedTensorType.get([], integer)
    table, numbers = (Term(x).to(integer) + zero for x in (table, numbers))
    how = op.attributes["scatter_dimension_numbers"]
    made = hlo.ScatterOp([table.kind], [table.value], indices, [numbers.value], how)
    block, body = made.regions[0].blocks.append(scalar, scalar), op.regions[0].blocks[0]
    new = dict(zip(body.arguments, block.arguments, strict=True))
    *inner, end = body.operations
    with ir.InsertionPoint(block):
        for each in inner:
            name = each.operation.name.removeprefix("stablehlo.")
            name = _OF_BOOLS.get(name, name) if element.width == 1 else name
            operands = [new[x] for x in each.operands]
            new[each.result] = ir.Operation.create(f"stablehlo.{name}", [scalar], operands).result
        hlo.return_([new[x] for x in end.operands])
    result = Term(made.results[0])
    odd = element.width == 1 and any(x.operation.name == "stablehlo.xor" for x in inner)
    replace(op, (result & result.like(1) if odd else result).to(element))


def take_by_comparison(rewriter: Rewriter) -> None:
    """Rewrite a gather at secret indices of a small table to comparisons of all indices.

    libspu takes one element after the other: a histogram of 1,500 numbers in 4 bins took half a
    minute. An index out of range is clamped, as StableHLO specifies. Gathers at public indices are
    left to libspu, and so are slices at one secret index, except of bools, which it cannot slice,
    and of integers that it shares as bits, as ``x & 3``, at which ABY3 fails.
    """
    takes = rewriter.ops("dynamic_slice", "gather")
    secrets = secret_values(rewriter.main) if takes else set()
    for op in takes:
        table, *indices = op.operands
        if not secrets.intersection(indices):
            continue
        if op.name == "stablehlo.gather":
            _take(rewriter, op)
        elif isinstance(Term(table).kind.element_type, ir.IntegerType):
            with rewriter.before(op):
                _slice_as_integers(rewriter, op)


def _take(rewriter: Rewriter, op: ir.Operation) -> None:
    axis, table = _axis(op), Term(op.operands[0])
    count = math.prod(Term(op.operands[1]).shape)
    if axis is not None and 0 < math.prod(table.shape) * count <= MAX_COMPARED:
        with rewriter.before(op):
            indices = Term(op.operands[1]).reshape([count]).to(rewriter.integer)
            taken = _taken(rewriter, table, indices.clamp(0, table.shape[axis] - 1), axis)
            replace(op, _laid_out(op, taken, axis))


def _slice_as_integers(rewriter: Rewriter, op: ir.Operation) -> None:
    x, *starts = op.operands
    element = Term(x).kind.element_type
    integer = rewriter.integer if element.width == 1 else element
    # adding a public zero makes libspu share the result as integers, not as bits
    whole = Term(x).to(integer) + rewriter.public(0, integer)
    taken = Term(hlo.dynamic_slice(whole.value, starts, number_columns(op, "slice_sizes")))
    replace(op, taken.to(element))


def _axis(op: ir.Operation) -> int | None:
    """Return the only axis that indices address, if whole slices are taken there."""
    how = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    table, indices = Term(op.operands[0]), Term(op.operands[1])
    axes = list(how.start_index_map)
    if len(axes) != 1 or list(how.operand_batching_dims):
        return None
    if how.index_vector_dim < len(indices.shape) and indices.shape[how.index_vector_dim] != 1:
        return None
    whole = [1 if i == axes[0] else size for i, size in enumerate(table.shape)]
    return axes[0] if number_columns(op, "slice_sizes") == whole else None


def _taken(rewriter: Rewriter, table: Term, indices: Term, axis: int) -> Term:
    """Return a tensor of indices × elements of a slice."""
    others = [i for i in range(len(table.shape)) if i != axis]
    first = Term(hlo.transpose(table.value, [axis, *others])) if axis else table
    size, count = table.shape[axis], indices.shape[0]
    shape = [size, count, math.prod(table.shape) // size]
    numbers = Term(hlo.iota(ir.RankedTensorType.get(shape[:2], rewriter.integer), 0))
    here = indices.spread(shape[:2], [1]).equals(numbers).spread(shape, [0, 1])
    spread = first.reshape([shape[0], shape[2]]).spread(shape, [0, 2])
    return sum_first_axis(rewriter, where(here, spread, spread.like(0)))


def _laid_out(op: ir.Operation, taken: Term, axis: int) -> Term:
    """Transpose slices to the gather's layout, with their dimensions at ``offset_dims``."""
    how = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    result = ir.RankedTensorType(op.results[0].type).shape
    offsets = list(how.offset_dims)
    order = [i for i in range(len(result)) if i not in offsets] + offsets
    found = taken.reshape([result[i] for i in order])
    if order == sorted(order):
        return found
    return Term(hlo.transpose(found.value, [order.index(i) for i in range(len(order))]))

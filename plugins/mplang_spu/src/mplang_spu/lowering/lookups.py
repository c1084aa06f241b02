"""Passes over secret places in small tables, read and written. Imports JAX."""

from __future__ import annotations

import math

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.module import numbers_of

from mplang_spu.lowering.draft import Draft
from mplang_spu.lowering.secrecy import secrets_of
from mplang_spu.lowering.sums import sole, total
from mplang_spu.lowering.term import Term, replace, where

__all__ = ["add_by_comparison", "take_by_comparison"]

MAX_COMPARED = 10_000_000
"""Elements that are compared in the place of a scatter or a gather."""


def add_by_comparison(draft: Draft) -> None:
    """Add to the places of a small table by comparing each place with all, as in a histogram.

    libspu adds one number after the other, each to all places. A place that is out of range takes
    part in nothing, as the specification of StableHLO says.
    """
    for op in draft.ops("scatter"):
        if len(op.operands) != 3 or sole(op) != "add":
            continue
        table, places, numbers = map(Term, op.operands)
        how = hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        if len(table.shape) != 1 or len(numbers.shape) != 1 or list(how.update_window_dims):
            continue
        shape = [numbers.shape[0], table.shape[0]]
        if 0 < math.prod(shape) <= MAX_COMPARED:
            with draft.before(op):
                rows = Term(hlo.iota(ir.RankedTensorType.get(shape, draft.integer), 1))
                here = places.reshape(shape[:1]).to(draft.integer).spread(shape, [0]).equals(rows)
                spread = numbers.spread(shape, [0])
                added = where(here, spread, spread.like(0))
                replace(op, table + total(draft, added))


def take_by_comparison(draft: Draft) -> None:
    """Take from secret places of a small table by comparing each place with all.

    libspu takes one element after the other: 4 bins of a histogram of 1,500 numbers took half a
    minute. A place that is out of range counts as the nearest one, as the specification of
    StableHLO says. What has public places is left to libspu, and so is a slice from one secret
    place, which it cannot take of bools.
    """
    takes = draft.ops("dynamic_slice", "gather")
    secrets = secrets_of(draft.main) if takes else set()
    for op in takes:
        table, *places = op.operands
        if not secrets.intersection(places):
            continue
        if op.name == "stablehlo.gather":
            _take(draft, op)
        elif Term(table).kind.element_type.width == 1:
            with draft.before(op):
                _slice_as_integers(draft, op)


def _take(draft: Draft, op: ir.Operation) -> None:
    axis, table = _axis(op), Term(op.operands[0])
    count = math.prod(Term(op.operands[1]).shape)
    if axis is not None and 0 < math.prod(table.shape) * count <= MAX_COMPARED:
        with draft.before(op):
            places = Term(op.operands[1]).reshape([count]).to(draft.integer)
            taken = _taken(draft, table, places.clamp(0, table.shape[axis] - 1), axis)
            replace(op, _laid_out(op, taken, axis))


def _slice_as_integers(draft: Draft, op: ir.Operation) -> None:
    x, *starts = op.operands
    whole = Term(x).to(draft.integer) + draft.public(0, draft.integer)  # shared as such, then
    taken = Term(hlo.dynamic_slice(whole.value, starts, numbers_of(op, "slice_sizes")))
    replace(op, taken.to(Term(x).kind.element_type))


def _axis(op: ir.Operation) -> int | None:
    """Return the only axis that places count along, if whole slices are taken there."""
    how = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    table, places = Term(op.operands[0]), Term(op.operands[1])
    axes = list(how.start_index_map)
    if len(axes) != 1 or list(how.operand_batching_dims):
        return None
    if how.index_vector_dim < len(places.shape) and places.shape[how.index_vector_dim] != 1:
        return None
    whole = [1 if i == axes[0] else size for i, size in enumerate(table.shape)]
    return axes[0] if numbers_of(op, "slice_sizes") == whole else None


def _taken(draft: Draft, table: Term, places: Term, axis: int) -> Term:
    """Return places × the elements of a slice."""
    others = [i for i in range(len(table.shape)) if i != axis]
    first = Term(hlo.transpose(table.value, [axis, *others])) if axis else table
    size, count = table.shape[axis], places.shape[0]
    shape = [size, count, math.prod(table.shape) // size]
    numbers = Term(hlo.iota(ir.RankedTensorType.get(shape[:2], draft.integer), 0))
    here = places.spread(shape[:2], [1]).equals(numbers).spread(shape, [0, 1])
    spread = first.reshape([shape[0], shape[2]]).spread(shape, [0, 2])
    return total(draft, where(here, spread, spread.like(0)))


def _laid_out(op: ir.Operation, taken: Term, axis: int) -> Term:
    """Return the slices where the gather has them: their dimensions stand at ``offset_dims``."""
    how = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    result = ir.RankedTensorType(op.results[0].type).shape
    offsets = list(how.offset_dims)
    order = [i for i in range(len(result)) if i not in offsets] + offsets
    found = taken.reshape([result[i] for i in order])
    if order == sorted(order):
        return found
    return Term(hlo.transpose(found.value, [order.index(i) for i in range(len(order))]))

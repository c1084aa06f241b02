"""Pass over argmax and argmin. Imports JAX."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.ext import number_columns

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import direction_of, splat_of
from mplang_spu.lowering.term import Term, made_by, replace, where


def pick_largest(rewriter: Rewriter) -> None:
    """Find the place of the largest number by one comparison per pair.

    JAX's reducer compares three times, as pairs may come in any order: the numbers, whether they
    are equal, and their places then. Of neighbors the first one wins where they are equal.
    """
    for op in rewriter.ops("reduce"):
        direction = _direction(op)
        axes = list(number_columns(op, "dimensions"))
        if direction is None or len(axes) != 1 or not _counts_along(op.operands[1], axes[0]):
            continue
        if Term(op.operands[0]).shape[axes[0]] == 0 or not _begins_at_none(op, direction):
            continue
        with rewriter.before(op):
            numbers, indices = (Term(value) for value in list(op.operands)[:2])
            winner = _winner(numbers, indices, axes[0], direction)
            shapes = [ir.RankedTensorType(value.type).shape for value in op.results]
            replace(op, *(each.reshape(shape) for each, shape in zip(winner, shapes, strict=True)))


def _winner(x: Term, indices: Term, axis: int, direction: str) -> tuple[Term, Term]:
    """Play rounds of neighbors along an axis until one is left."""
    while (count := x.shape[axis]) > 1:
        pairs = count // 2 * 2
        (a, b), (at_a, at_b) = (_neighbors(each, axis, pairs) for each in (x, indices))
        second = b > a if direction == "GT" else b < a
        won = where(second, b, a), where(second, at_b, at_a)
        last = (each.part(axis, pairs, count) for each in (x, indices))
        x, indices = (
            Term(hlo.concatenate([one.value, rest.value], axis)) if pairs < count else one
            for one, rest in zip(won, last, strict=True)
        )
    return x, indices


def _neighbors(x: Term, axis: int, count: int) -> tuple[Term, Term]:
    starts, stops, steps = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    stops[axis], steps[axis] = count, 2
    first = Term(hlo.slice(x.value, starts, stops, steps))
    starts[axis] = 1
    return first, Term(hlo.slice(x.value, starts, stops, steps))


def _begins_at_none(op: ir.Operation, direction: str) -> bool:
    """Return whether no number loses against the initial ones, which are JAX's own."""
    number, index = (splat_of(value) for value in list(op.operands)[2:])
    if number is None or index != 0:
        return False
    if number.dtype.kind == "b":
        return bool(number == (direction == "LT"))
    limits = (np.finfo if number.dtype.kind == "f" else np.iinfo)(number.dtype)
    return bool(number <= limits.min if direction == "GT" else number >= limits.max)


def _direction(op: ir.Operation) -> str | None:
    """Return ``GT`` for JAX's argmax, ``LT`` for its argmin, and ``None`` for other reductions."""
    if len(op.operands) != 4:
        return None
    block = op.regions[0].blocks[0]
    x, at_x, y, at_y = block.arguments
    *_, end = block.operations
    number, index = (_chosen(value) for value in end.operation.operands)
    if number is None or index is None or number[1:] != (x, y) or index[1:] != (at_x, at_y):
        return None
    direction = _compared(number[0], x, y)
    either = made_by(index[0], "or")
    if direction not in ("GT", "LT") or either is None:
        return None
    better, tie = either.operands
    both = made_by(tie, "and")
    if _compared(better, x, y) != direction or both is None:
        return None
    equal, before = both.operands
    ordered = _compared(equal, x, y) == "EQ" and _compared(before, at_x, at_y) == "LT"
    return direction if ordered else None


def _chosen(value: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    op = made_by(value, "select")
    if op is None:
        return None
    condition, yes, no = op.operands
    return condition, yes, no


def _compared(value: ir.Value, x: ir.Value, y: ir.Value) -> str | None:
    """Return how two numbers are compared; ``or`` with false, which is left of NaN, is nothing."""
    either = made_by(value, "or")
    if either is not None:
        first, second = either.operands
        return _compared(first, x, y) if splat_of(second) == 0 else None
    op = made_by(value, "compare")
    return direction_of(op) if op is not None and list(op.operands) == [x, y] else None


def _counts_along(value: ir.Value, axis: int) -> bool:
    op = made_by(value, "broadcast_in_dim", "iota")
    if op is None:
        return False
    if op.name == "stablehlo.iota":
        return bool(op.attributes["iota_dimension"].value == axis)
    dims = list(number_columns(op, "broadcast_dimensions"))
    return dims == [axis] and _counts_along(op.operands[0], 0)

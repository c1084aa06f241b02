"""Passes over sums, scans and initial values of reductions. Imports JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.ext import number_columns

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import MOVES, splat_of
from mplang_spu.lowering.term import Term, is_float, replace, splat

_REDUCTIONS = ("reduce", "reduce_window", "select_and_scatter")


def clamp_starts(rewriter: Rewriter) -> None:
    """Clamp initial values of integer maxima and minima to numbers that the ring can compare.

    XLA starts a maximum of int64 at -2^63. The ring compares by the sign of a difference, which
    overflows there.
    """
    limit = rewriter.target.integers
    for op in rewriter.ops(*_REDUCTIONS):
        if not _body(op) & {"compare", "maximum", "minimum"}:
            continue
        for i, operand in enumerate(op.operands):
            number = splat_of(operand)
            if number is None or number.dtype.kind not in "iu" or -limit <= int(number) < limit:
                continue
            with rewriter.before(op):
                op.operands[i] = splat(operand.type, max(-limit, min(int(number), limit - 1))).value


def sum_by_products(rewriter: Rewriter) -> None:
    """Rewrite sums to products with ones on ABY3 and SEMI2K, and to pairwise sums on CHEETAH.

    libspu adds slices, one after the other. The product with a public integer is local and is not
    truncated, so sums are as exact and as large as before. The ones are padded from one operand:
    libspu's compiler would make a float of a constant, and truncate.
    """
    for op in rewriter.ops("reduce"):
        if len(op.operands) != 2 or reducer_op(op) != "add" or splat_of(op.operands[1]) != 0:
            continue
        x, axes = Term(op.operands[0]), number_columns(op, "dimensions")
        if math.prod(x.shape) == 0 or x.kind.element_type.width == 1:
            continue
        with rewriter.before(op):
            if axes == [0] and len(x.shape) > 1:
                replace(op, sum_first_axis(rewriter, x))
            elif rewriter.target.protocol != "CHEETAH":
                replace(op, _product(rewriter, x, axes))


def sum_first_axis(rewriter: Rewriter, x: Term) -> Term:
    """Return the sum over the first axis.

    Args:
        rewriter: the module.
        x: a tensor with at least one dimension.

    Returns:
        A tensor without the first dimension.
    """
    return _halves(x) if rewriter.target.protocol == "CHEETAH" else _product(rewriter, x, [0])


def _product(rewriter: Rewriter, x: Term, axes: Sequence[int]) -> Term:
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    first = kept == list(range(len(axes), len(x.shape)))
    order = [*axes, *kept] if first else [*kept, *axes]
    count, rest = (math.prod(x.shape[axis] for axis in group) for group in (axes, kept))
    result = [x.shape[axis] for axis in kept]
    if order != sorted(order):
        x = Term(hlo.transpose(x.value, order))
    if count == 1:
        return x.reshape(result)
    shape = [count, rest] if first else [rest, count]
    if is_float(x.value) and _is_converted(x.value):
        x = rewriter.barrier(x)
    ones = _ones(rewriter, count, x.kind.element_type).reshape([1, count] if first else [count, 1])
    flat = x.reshape(shape)
    return (_dot(ones, flat) if first else _dot(flat, ones)).reshape(result)


def _is_converted(value: ir.Value) -> bool:
    """Return whether a float was an integer: libspu would make floats of the ones instead."""
    op = value.owner
    while isinstance(op, ir.Operation) and op.name.removeprefix("stablehlo.") in MOVES:
        op = op.operands[0].owner
    return isinstance(op, ir.Operation) and op.name == "stablehlo.convert"


def _ones(rewriter: Rewriter, count: int, element: ir.Type) -> Term:
    one = rewriter.public(1, ir.IntegerType.get_signless(32))
    padded = hlo.pad(one.reshape([1]).value, one.value, [count - 1], [0], [0])
    return Term(padded).to(element)


def _dot(x: Term, y: Term) -> Term:
    kind = ir.RankedTensorType.get([x.shape[0], y.shape[1]], x.kind.element_type)
    dims = hlo.DotDimensionNumbers.get([], [], [1], [0])
    return Term(hlo.dot_general(kind, x.value, y.value, dims))


def _halves(x: Term) -> Term:
    """Add the first half to the second one until one row is left."""
    while (size := x.shape[0]) > 1:
        half = size // 2
        both = x.part(0, 0, half) + x.part(0, half, 2 * half)
        x = both if size % 2 == 0 else _join([both, x.part(0, 2 * half, size)], 0)
    return x.reshape(x.shape[1:])


def scan_in_steps(rewriter: Rewriter) -> None:
    """Rewrite ``cumsum``, ``cumprod``, ``cummax``, ``cummin`` to scans by steps of 1, 2, 4, ….

    JAX writes a window as long as the axis, and libspu materializes all windows, which takes memory
    quadratic in the length.
    """
    for op in rewriter.ops("reduce_window"):
        found = _scanned(op)
        if found is not None:
            with rewriter.before(op):
                replace(op, _scan(Term(op.operands[0]), *found, reducer_op(op)))


def _scanned(op: ir.Operation) -> tuple[int, bool] | None:
    """Return the axis of a scan, and whether it goes backwards; ``None`` for other windows."""
    if len(op.operands) != 2 or reducer_op(op) not in _STARTS or not _is_start(op):
        return None
    shape = Term(op.operands[0]).shape
    window = number_columns(op, "window_dimensions")
    axes = [axis for axis, size in enumerate(window) if size != 1]
    if len(axes) != 1 or window[axes[0]] != shape[axes[0]] or "padding" not in op.attributes:
        return None
    for name in ("window_strides", "base_dilations", "window_dilations"):
        if set(number_columns(op, name)) - {1}:
            return None
    padding = np.reshape(number_columns(op, "padding"), (-1, 2)).tolist()
    axis = axes[0]
    before_and_after = padding.pop(axis)
    if any(any(pair) for pair in padding):
        return None
    size = shape[axis]
    backwards = {(size - 1, 0): False, (0, size - 1): True}.get(tuple(before_and_after))
    return None if backwards is None else (axis, backwards)


_STARTS = {"add": 0, "multiply": 1, "maximum": -math.inf, "minimum": math.inf}


def _is_start(op: ir.Operation) -> bool:
    """Return whether the initial value of a scan is the identity of its op."""
    number, wanted = splat_of(op.operands[1]), _STARTS[reducer_op(op)]
    if number is None or not math.isinf(wanted) or number.dtype.kind == "f":
        return number is not None and number == wanted
    limits = np.iinfo(number.dtype)
    return bool(number == (limits.min if wanted < 0 else limits.max))


def _scan(x: Term, axis: int, backwards: bool, name: str) -> Term:
    size, step = x.shape[axis], 1
    while step < size:
        front, back = x.part(axis, 0, size - step), x.part(axis, step, size)
        joined = Term(getattr(hlo, name)(front.value, back.value))
        ends = x.part(axis, size - step, size) if backwards else x.part(axis, 0, step)
        x = _join([joined, ends] if backwards else [ends, joined], axis)
        step *= 2
    return x


def _join(parts: Sequence[Term], axis: int) -> Term:
    return Term(hlo.concatenate([part.value for part in parts], axis))


def _body(op: ir.Operation) -> set[str]:
    return {inner.operation.name.removeprefix("stablehlo.")
            for region in op.regions for inner in region.blocks[0].operations}  # fmt: skip


def reducer_op(op: ir.Operation) -> str:
    """Return the op of a reducer that applies only it to both arguments; otherwise ""."""
    block = op.regions[0].blocks[0]
    inner = block.operations[0].operation
    if len(block.operations) != 2 or set(inner.operands) != set(block.arguments):
        return ""
    name: str = inner.name.removeprefix("stablehlo.")
    return name

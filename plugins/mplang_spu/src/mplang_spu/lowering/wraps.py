"""Pass over narrow integers, which wrap around. Imports JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from jaxlib.mlir import ir
from mplang_stablehlo.module import number_columns, walk

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, replace

Bounds: TypeAlias = "tuple[int, int] | None"
"""Smallest and largest integer of libspu's ring that a value may be; ``None`` for any."""

DEPTH = 200

_MOVES = {
    "broadcast_in_dim", "concatenate", "copy", "pad", "reshape", "reverse", "select", "slice",
    "transpose", "dynamic_slice", "dynamic_update_slice", "gather",
}  # fmt: skip
"""Ops whose results are elements of their operands."""

_INDICES = {
    "select": {0}, "dynamic_slice": range(1, 99), "dynamic_update_slice": range(2, 99),
    "gather": {1},
}  # fmt: skip
"""Operands of moves that choose elements, and have to be numbers of their type."""

_MODULAR = {"add", "subtract", "multiply", "negate", "dot_general", "not", "and", "or", "xor"}
"""Ops whose result modulo 2^n depends on their operands modulo 2^n only."""

_REDUCERS = {"add", "multiply", "and", "or", "xor"}


def wrap_integers(rewriter: Rewriter) -> None:
    """Reduce unsigned integers, int8 and int16 to the range of their type, where it matters.

    libspu's integers are those of its ring: an int8 of 100 + 100 is 200, and a uint32 of 0 - 1 is
    -1. Sums, products and bitwise ops are right all the same in the bits of their type, and results
    are cut to it. What looks at the number, as a comparison, a shift to the right or a conversion
    to a float does, gets it reduced, unless its bounds show that it fits. int32 and int64 are not
    reduced: whoever leaves their range has made a mistake, and the reduction costs as much as a
    comparison.
    """
    known: dict[ir.Value, Bounds] = {}
    reduced: dict[ir.Value, ir.Value] = {}
    for op in _ops(rewriter):
        name = op.name.removeprefix("stablehlo.")
        for i in _looked_at(op, name, rewriter):
            value = op.operands[i]
            if not _is_narrow(value, rewriter) or _fits(value, known):
                continue
            if value not in reduced:
                with rewriter.before(op), ir.InsertionPoint.after(value.owner):
                    made = _reduced(rewriter, Term(value)).value
                reduced[value], known[made] = made, _range(value)
            op.operands[i] = reduced[value]
        if name == "shift_right_logical" and _has_sign_copies(op.operands[0], rewriter):
            with rewriter.before(op):
                replace(op, _shifted(rewriter, *map(Term, op.operands)))
        if name == "convert" and _is_unsigned_of_32(op) and not _fits(op.results[0], known):
            with rewriter.before(op):
                made = Term(op.operands[0]).to(Term(op.results[0]).kind.element_type)
                replace(op, _reduced(rewriter, made))


def _ops(rewriter: Rewriter) -> Sequence[ir.Operation]:
    names = {op.name.removeprefix("stablehlo.") for op in walk(rewriter.main)}
    return rewriter.ops(*names)


def _looked_at(op: ir.Operation, name: str, rewriter: Rewriter) -> Sequence[int]:
    """Return the operands whose numbers count, and not only their bits."""
    every = range(len(op.operands))
    if name == "return" and op.parent == rewriter.main:
        return ()
    if name in _MOVES:
        return [i for i in every if i in _INDICES.get(name, ())]
    if name in _MODULAR:
        return ()
    if name == "shift_left":
        return (1,)
    if name == "convert":
        return () if _keeps_bits(op) else every
    if name in ("reduce", "reduce_window") and _reducer(op) in _REDUCERS:
        return ()
    return every


def _keeps_bits(convert: ir.Operation) -> bool:
    source, target = convert.operands[0], convert.results[0]
    return not is_float(target) and 1 < _width(target) <= _width(source)


def _is_unsigned_of_32(convert: ir.Operation) -> bool:
    """Return whether a conversion is one of uint32 to int32: the highest bit becomes a sign."""
    source, target = convert.operands[0], convert.results[0]
    is_signed = not is_float(target) and not _is_unsigned(target)
    return _is_unsigned(source) and is_signed and _width(source) == _width(target) == 32


def _reducer(op: ir.Operation) -> str:
    body = [each.operation.name for each in op.regions[0].blocks[0].operations]
    return body[0].removeprefix("stablehlo.") if len(body) == 2 else ""


def _width(value: ir.Value) -> int:
    return int(ir.RankedTensorType(value.type).element_type.width)


def _is_unsigned(value: ir.Value) -> bool:
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType) and bool(element.is_unsigned)


def _is_narrow(value: ir.Value, rewriter: Rewriter) -> bool:
    width = _width(value)
    if is_float(value) or width == 1 or width >= rewriter.target.bits:
        return False
    return _is_unsigned(value) or width < 32


def _range(value: ir.Value) -> tuple[int, int]:
    """Return the smallest and the largest integer of a value's type."""
    width = _width(value)
    if width == 1 or _is_unsigned(value):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def _fits(value: ir.Value, known: dict[ir.Value, Bounds]) -> bool:
    found, (low, high) = _bounds(value, known), _range(value)
    return found is not None and low <= found[0] and found[1] <= high


def _bounds(value: ir.Value, known: dict[ir.Value, Bounds], depth: int = DEPTH) -> Bounds:
    if value not in known:
        known[value] = _of_op(value, known, depth - 1) if depth else None
    return known[value]


def _of_op(value: ir.Value, known: dict[ir.Value, Bounds], depth: int) -> Bounds:
    op = value.owner
    whole = _range(value)
    if not isinstance(op, ir.Operation):
        return whole
    number = splat_of(value)
    if number is not None:
        return int(number), int(number)
    name = op.name.removeprefix("stablehlo.")
    if any(is_float(each) for each in op.operands):
        return whole

    def of(i: int) -> Bounds:
        return _bounds(op.operands[i], known, depth)

    if name in _MOVES:
        chosen = _INDICES.get(name, ())
        return _union([of(i) for i in range(len(op.operands)) if i not in chosen])
    if name == "convert":
        return of(0) if _keeps_bits(op) or _fits(op.operands[0], known) else _range(op.operands[0])
    if name in ("reduce", "reduce_window") and _reducer(op) == "add":
        return _plus(of(1), _times(of(0), (0, _terms(op))))
    if name == "dot_general":
        count = _contracted(op)
        return _times(_times(of(0), of(1)), (0, count))
    if name in ("and", "or", "xor"):
        inside = all(_fits(each, known) for each in op.operands)
        return whole if inside else None
    made = {"add": _plus, "subtract": _minus, "multiply": _times}.get(name)
    if made is not None:
        return made(of(0), of(1))
    if name in ("negate", "not") and whole != (0, 1):
        return _minus((0, 0) if name == "negate" else (-1, -1), of(0))
    return None if name in ("shift_left", "scatter", "power", *_NOT_CUT) else whole


_NOT_CUT = ("convolution", "reduce", "reduce_window", "abs")
"""Further ops whose results may leave the range of their type."""


def _union(found: Sequence[Bounds]) -> Bounds:
    if any(each is None for each in found):
        return None
    known = [each for each in found if each is not None]
    return min(low for low, _ in known), max(high for _, high in known)


def _plus(x: Bounds, y: Bounds) -> Bounds:
    return None if x is None or y is None else (x[0] + y[0], x[1] + y[1])


def _minus(x: Bounds, y: Bounds) -> Bounds:
    return None if x is None or y is None else (x[0] - y[1], x[1] - y[0])


def _times(x: Bounds, y: Bounds) -> Bounds:
    if x is None or y is None:
        return None
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _terms(op: ir.Operation) -> int:
    """Return the number of elements that one element of a reduction's result adds."""
    shape = ir.RankedTensorType(op.operands[0].type).shape
    if op.name == "stablehlo.reduce":
        return math.prod(shape[axis] for axis in number_columns(op, "dimensions"))
    return math.prod(number_columns(op, "window_dimensions"))


def _contracted(op: ir.Operation) -> int:
    """Return at least the number of products that one element of a dot product adds."""
    return math.prod(ir.RankedTensorType(op.operands[0].type).shape)


def _reduced(rewriter: Rewriter, x: Term) -> Term:
    """Return a value modulo 2^n, in the range of its type. The mask is no constant.

    libspu's compiler would see that it changes nothing, and drop it.
    """
    kind, width = x.kind.element_type, _width(x.value)
    element = kind if width == 64 else rewriter.integer
    wide = x.to(element)
    mask = rewriter.public(2**width - 1, element)
    if _is_unsigned(x.value):  # libspu sorts bits as if the highest one were a sign; a sum has none
        return ((wide & wide.like(mask)) + rewriter.public(0, element)).to(kind)
    half = rewriter.public(2 ** (width - 1), element)
    return (((wide + half) & wide.like(mask)) - half).to(kind)


def _has_sign_copies(value: ir.Value, rewriter: Rewriter) -> bool:
    """Return whether a negative number has bits beyond its type."""
    return not _is_unsigned(value) and _width(value) < rewriter.target.bits


def _shifted(rewriter: Rewriter, x: Term, by: Term) -> Term:
    """Shift the bits of a signed integer to the right: those of the ring are all like its sign.

    So the highest ones, as many as it is shifted by, become zero.
    """
    width = _width(x.value)
    lowest = x.like(rewriter.public(-(2 ** (width - 1)), x.kind.element_type))
    copies, one = _shift("right_arithmetic", lowest, by), x.like(1)
    kept = ~_shift("left", copies, one)
    return _shift("right_arithmetic", x, by) & kept


def _shift(how: str, x: Term, by: Term) -> Term:
    made = ir.Operation.create(f"stablehlo.shift_{how}", [x.kind], [x.value, by.value])
    return Term(made.results[0])

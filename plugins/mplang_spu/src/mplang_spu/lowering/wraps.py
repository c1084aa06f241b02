"""Pass over integers narrower than the ring, which wrap around. Imports JAX."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from mplang_analysis import Interval
from mplang_stablehlo.ext import combined, element_type_of, walk

from mplang_spu.lowering.bounds import RingBounds
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.term import Term, is_float, replace

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
"""Reducers whose result modulo 2^n depends on their operands modulo 2^n only."""


def wrap_integers(rewriter: Rewriter) -> None:
    """Reduce integers to the range of their type, where it matters.

    libspu's integers are those of its ring: an int8 of 100 + 100 is 200, and a uint32 of 0 - 1 is
    -1. Sums, products and bitwise ops are right all the same in the bits of their type, and results
    are cut to it when they are revealed; until then it is noted of them. What looks at the number,
    as a comparison, a shift to the right or a conversion to a float does, gets it reduced, unless
    its bounds show that it fits.
    """
    known = RingBounds(rewriter.main, rewriter.unreduced)
    reduced: dict[ir.Value, ir.Value] = {}
    for op in _ops(rewriter):
        name = op.name.removeprefix("stablehlo.")
        for i in looked_at(op, name):
            value = op.operands[i]
            if not _is_narrow(value, rewriter) or known.fits(value):
                continue
            if value not in reduced:
                with rewriter.before(op), _after(value):
                    reduced[value] = _reduced(rewriter, Term(value), known).value
                known.tell(reduced[value])
            op.operands[i] = reduced[value]
        if name == "shift_right_logical" and _has_sign_copies(op.operands[0], rewriter):
            known.tell(op.results[0])
            with rewriter.before(op):
                made = _shifted(rewriter, *map(Term, op.operands))
                known.tell(made.value)
                replace(op, made)
        else:
            known.follow(op)
    body = rewriter.main.regions[0].blocks[0].operations
    rewriter.unreduced_results = frozenset(
        i
        for i, value in enumerate(body[len(body) - 1].operands)
        if _is_narrow(value, rewriter) and not known.fits(value)
    )


def _after(value: ir.Value) -> ir.InsertionPoint:
    if isinstance(value.owner, ir.Block):  # an operand of the function
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def _ops(rewriter: Rewriter) -> Sequence[ir.Operation]:
    names = {op.name.removeprefix("stablehlo.") for op in walk(rewriter.main)}
    return rewriter.ops(*names)


def looked_at(op: ir.Operation, name: str) -> Sequence[int]:
    """Return the operands whose numbers count, and not only their bits.

    Args:
        op: the op.
        name: its name, without the prefix.
    """
    every = range(len(op.operands))
    if name in _MOVES:
        return [i for i in every if i in _INDICES.get(name, ())]
    if name in _MODULAR:
        return ()
    if name == "shift_left":
        return (1,)
    if name == "convert":
        return () if _keeps_bits(op) else every
    if name in ("reduce", "reduce_window") and combined(op.regions[0]) in _REDUCERS:
        return ()
    return every


def _keeps_bits(convert: ir.Operation) -> bool:
    source, target = convert.operands[0], convert.results[0]
    return not is_float(target) and 1 < _width(target) <= _width(source)


def _width(value: ir.Value) -> int:
    return int(ir.RankedTensorType(value.type).element_type.width)


def _is_unsigned(value: ir.Value) -> bool:
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType) and bool(element.is_unsigned)


def _is_narrow(value: ir.Value, rewriter: Rewriter) -> bool:
    return not is_float(value) and 1 < _width(value) < rewriter.target.bits


def _reduced(rewriter: Rewriter, x: Term, bounds: RingBounds) -> Term:
    """Return a value modulo 2^n, in the range of its type.

    The numbers of it are not constants: libspu's compiler would see that they change nothing, and
    drop them.
    """
    known, limits, size = bounds[x.value], element_type_of(x.value).limits, 2 ** _width(x.value)
    is_near = limits.low - size <= known.low and known.high <= limits.high + size
    if is_near and bounds.constants(x.value) < 2:  # XLA combines two of them modulo 2^n
        return _carried(rewriter, x, known)
    return _masked(rewriter, x)


def _carried(rewriter: Rewriter, x: Term, known: Interval) -> Term:
    """Reduce a number that is at most 2^n beyond its type, as a sum of two: a comparison each way.

    That is a half of a mask's price on ABY3, and a third on CHEETAH.
    """
    kind, limits = x.kind.element_type, element_type_of(x.value).limits
    wide = x.to(rewriter.integer if _width(x.value) < 64 else kind)
    step = _unsigned(rewriter, x)
    half = rewriter.public(2 ** (_width(x.value) - 1), step)
    total = wide.to(step)
    if known.high > limits.high:
        over = (wide > rewriter.public(int(limits.high), wide.kind.element_type)).to(step)
        total = total - over * half - over * half
    if known.low < limits.low:
        under = (wide < rewriter.public(int(limits.low), wide.kind.element_type)).to(step)
        total = total + under * half + under * half
    return total.to(kind)


def _masked(rewriter: Rewriter, x: Term) -> Term:
    """Reduce any number, by its bits."""
    kind, width = x.kind.element_type, _width(x.value)
    element = _unsigned(rewriter, x)
    wide = x.to(element)
    mask = rewriter.public(2**width - 1, element)
    if _is_unsigned(x.value):  # libspu sorts bits as if the highest one were a sign; a sum has none
        return ((wide & wide.like(mask)) + rewriter.public(0, element)).to(kind)
    half = rewriter.public(2 ** (width - 1), element)
    return (((wide + half) & wide.like(mask)) - half).to(kind)


def _unsigned(rewriter: Rewriter, x: Term) -> ir.Type:
    """Return an integer type that holds 2^n - 1."""
    if _width(x.value) < 64:
        return rewriter.integer
    return ir.IntegerType.get_unsigned(64, rewriter.module.context)


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

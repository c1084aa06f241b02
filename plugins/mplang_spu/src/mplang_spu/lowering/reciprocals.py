"""Passes over quotients whose divisors are bounded, or few. Imports JAX."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval
from mplang_stablehlo.ext import INTERVAL_RULES, Interpreter, fixed_point

from mplang_spu.lowering.polynomials import PRECISE, is_wide, newton, widely
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.signs import never_negative, never_positive, terms_of_softmax
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, replace, where
from mplang_spu.target import Target

MAX_RATIO = 1 << 12
"""Largest ratio of the bounds; beyond it libspu's search is as fast."""
SLACK = 2.0**-20
"""Relative distance that bounds of any machine are apart at most."""
LOST = 14
"""Bits of the fixed point that a reciprocal keeps at least."""

FEWER = 4
"""How many times fewer divisors than quotients make a reciprocal pay."""

_SPREADS = {"stablehlo.broadcast_in_dim", "stablehlo.reshape"}
_BOUNDED = {
    "cosine": Interval(-1, 1),
    "logistic": Interval(0, 1),
    "sine": Interval(-1, 1),
    "tanh": Interval(-1, 1),
}
"""Bounds of functions of any number."""

_ROUNDINGS = {
    f"stablehlo.{name}"
    for name in ("ceil", "convert", "floor", "remainder", "round_nearest_afz", "round_nearest_even")
}


def divide_by_bounded(rewriter: Rewriter) -> None:
    """Multiply by the reciprocal of a divisor that is within known bounds.

    libspu's division finds the highest bit of its divisor first, which costs as much as sixty
    products on CHEETAH. Sums of a softmax are from 1 to the number of terms; of others the
    bounds follow from literals, as in ``1 / (1 + jnp.abs(jnp.tanh(x)))``.
    """
    divisors = _divisions(rewriter)
    if not divisors:
        return
    known = _bounds(rewriter)
    for op in divisors:
        terms = terms_of_softmax(op.operands[1])
        bounds = Interval(1, terms) if terms else known[op.operands[1]]
        if 0 < bounds.low <= bounds.high < math.inf:
            bounds = _rounded_outward(bounds)
        if _is_near(bounds, rewriter.target):
            with rewriter.before(op):
                source, spread = _without_spreading(op.operands[1])
                double = Term(source).kind.element_type.width > 32
                by = functools.partial(_reciprocal, bounds, PRECISE**2 if double else PRECISE)
                inverse = widely(Term(source), by)
                replace(op, Term(op.operands[0]) * spread(inverse))


def divide_by_spread(rewriter: Rewriter) -> None:
    """Multiply by the reciprocal of what was broadcast to a divisor, as in ``(x - mean) / std``.

    libspu divides each element, which on CHEETAH takes as long as sixty products. The fixed point
    keeps too few bits of the reciprocal of a large number, so that dividend and divisor are scaled
    down by a power of two first.
    """
    if not rewriter.target.holds_products:
        return
    for op in _divisions(rewriter):
        source, spread = _without_spreading(op.operands[1])
        if math.prod(Term(source).shape) * FEWER > math.prod(Term(op.results[0]).shape):
            continue
        with rewriter.before(op):
            x = Term(op.operands[0])
            factors, inverse = _scaled_reciprocal(rewriter, Term(source))
            for factor in factors:
                x = rewriter.barrier(x * spread(factor))
            replace(op, x * spread(inverse))


def _scaled_reciprocal(rewriter: Rewriter, x: Term) -> tuple[Sequence[Term], Term]:
    """Return powers of two by which both are to be multiplied, and the reciprocal of ``x`` then."""
    fxp, limit = rewriter.target.fxp, int(math.log2(rewriter.target.limit))
    bits = max((fxp - LOST) // 2, 4)  # that a divisor has in the end
    group = (fxp - 1) // bits  # steps of a factor that the fixed point holds
    negative, size = None, x
    if not never_negative(x.value):
        negative = x < 0.0
        size = where(negative, -x, x)
    steps = [(size > 2.0**power) for power in range(bits, limit, bits)]
    factors = []
    for first in range(0, len(steps), group):
        factor = x.like(1.0)
        for i, is_large in enumerate(steps[first : first + group], 1):
            factor = where(is_large, 2.0 ** (-i * bits), factor)  # exact: nothing is truncated
        factors.append(factor)
    for factor in factors:
        size = rewriter.barrier(size * factor)
    inverse = 1.0 / size
    return factors, inverse if negative is None else where(negative, -inverse, inverse)


def _divisions(rewriter: Rewriter) -> Sequence[ir.Operation]:
    """Return the quotients of floats that are not rounded, by divisors that are not constants."""
    return [
        op
        for op in rewriter.ops("divide")
        if is_float(op.results[0])
        and is_wide(Term(op.results[0]))
        and splat_of(op.operands[1]) is None
        and not _is_rounded(op)
    ]


def _is_rounded(op: ir.Operation) -> bool:
    """Return whether a quotient is rounded, which is exact by its dividend and divisor."""
    return any(use.owner.name in _ROUNDINGS for use in op.results[0].uses)


def _rounded_outward(bounds: Interval) -> Interval:
    """Return bounds of six bits: all members write the same, whatever their ``exp`` gives last.

    They are apart, so that a polynomial is near between them.
    """
    low, high = bounds.low * (1 - SLACK), bounds.high * (1 + SLACK)
    (of_low, low_power), (of_high, high_power) = math.frexp(low), math.frexp(high)
    low = math.ldexp(math.floor(of_low * 64) / 64, low_power)
    high = math.ldexp(math.ceil(of_high * 64) / 64, high_power)
    return Interval(min(low, 0.75 * high), high)


def _is_near(bounds: Interval, target: Target) -> bool:
    """Return whether Newton's method takes few turns, holds, and keeps enough bits."""
    exact = 2.0 ** (target.fxp - LOST)
    if not 1 / exact <= bounds.low <= bounds.high <= exact:
        return False
    return bounds.high / bounds.low <= min(MAX_RATIO, target.factors / MAX_RATIO)


def _reciprocal(bounds: Interval, precise: float, x: Term) -> Term:
    scale = 0.5 ** math.ceil(math.log2(bounds.high))  # exact in the fixed point
    return newton(x * scale, bounds.low * scale, bounds.high * scale, precise) * scale


def _bounds(rewriter: Rewriter) -> Interpreter:
    """Return bounds by value: nothing is known of operands, states of loops and branches."""
    run = Interpreter(fixed_point(rewriter.target.fxp), INTERVAL_RULES)
    for value in rewriter.main.regions[0].blocks[0].arguments:
        run[value] = UNKNOWN
    for op in rewriter.all_ops():
        for block in (block for region in op.regions for block in region.blocks):
            for value in block.arguments:
                run[value] = UNKNOWN
        for value, bounds in zip(op.results, _bounds_of_results(op, run), strict=True):
            run[value] = bounds
        if op.name == "stablehlo.logistic" and rewriter.target.sigmoid_mode == "mm1":
            run[op.results[0]] = UNKNOWN  # a line without bounds
    return run


def _bounds_of_results(op: ir.Operation, run: Interpreter) -> Sequence[Interval]:
    name = op.name.removeprefix("stablehlo.")
    if name in _BOUNDED or (name == "exponential" and never_positive(op.operands[0])):
        return [_BOUNDED.get(name, Interval(0, 1))]
    if name in ("case", "if", "while"):
        return [UNKNOWN] * len(op.results)
    return run.of_rule(op, [run[value] for value in op.operands])


def _without_spreading(value: ir.Value) -> tuple[ir.Value, Callable[[Term], Term]]:
    """Return what was broadcast to a value, and what broadcasts another one alike."""
    path: list[ir.Operation] = []
    while isinstance(value.owner, ir.Operation) and value.owner.name in _SPREADS:
        path.insert(0, value.owner)
        value = value.owner.operands[0]

    def spread(x: Term) -> Term:
        for op in path:
            named = {each.name: each.attr for each in op.attributes}
            made = ir.Operation.create(op.name, [op.results[0].type], [x.value], named)
            x = Term(made.results[0])
        return x

    return value, spread

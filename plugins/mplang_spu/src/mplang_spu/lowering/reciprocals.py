"""Pass over quotients whose divisor is within known bounds. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval
from mplang_stablehlo.ext import INTERVAL_RULES, Interpreter, fixed_point

from mplang_spu.lowering.polynomials import is_wide, newton, widely
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.signs import never_positive, terms_of_softmax
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, replace

MAX_RATIO = 1 << 12
"""Largest ratio of the bounds; beyond it libspu's search is as fast."""
LOST = 14
"""Bits of the fixed point that a reciprocal keeps at least."""

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
    divisors = [
        op
        for op in rewriter.ops("divide")
        if is_float(op.results[0])
        and is_wide(Term(op.results[0]))
        and splat_of(op.operands[1]) is None
        and not _is_rounded(op)
    ]
    if not divisors:
        return
    known = _bounds(rewriter)
    for op in divisors:
        terms = terms_of_softmax(op.operands[1])
        bounds = Interval(1, terms) if terms else known[op.operands[1]]
        if _is_near(bounds, rewriter):
            with rewriter.before(op):
                source, spread = _without_spreading(op.operands[1])
                inverse = widely(Term(source), functools.partial(_reciprocal, bounds))
                replace(op, Term(op.operands[0]) * spread(inverse))


def _is_rounded(op: ir.Operation) -> bool:
    """Return whether a quotient is rounded, which is exact by its dividend and divisor."""
    return any(use.owner.name in _ROUNDINGS for use in op.results[0].uses)


def _is_near(bounds: Interval, rewriter: Rewriter) -> bool:
    """Return whether Newton's method takes few turns, and the reciprocal keeps enough bits."""
    exact = 2.0 ** (rewriter.target.fxp - LOST)
    return 1 / exact <= bounds.low <= bounds.high <= min(exact, bounds.low * MAX_RATIO)


def _reciprocal(bounds: Interval, x: Term) -> Term:
    return newton(x * (1 / bounds.high), bounds.low / bounds.high, 1) * (1 / bounds.high)


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

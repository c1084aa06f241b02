"""Interval rules for branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.intervals.element_types import element_type_of
from mplang_stablehlo.intervals.interpreter import Interpreter, Rule

MAX_TURNS = 500
MAX_OPS = 100_000  # interpreted in one module; some seconds
WIDENING_DELAY = 20  # iterations before intervals that still grow are widened to unknown


def _case(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Run the branch of a known index, the last one if out of range; else join all branches."""
    (index,), last = ins, len(op.regions) - 1
    chosen = range(last + 1)
    if index.low == index.high:
        number = int(index.low)
        chosen = range(number, number + 1) if 0 <= number <= last else range(last, last + 1)
    return _join([run.block(op.regions[i].blocks[0], []) for i in chosen])


def _if(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    (predicate,) = ins
    chosen = [
        region for region, wanted in zip(op.regions, (1, 0), strict=True) if wanted in predicate
    ]
    return _join([run.block(region.blocks[0], []) for region in chosen])


def _join(branches: Sequence[Sequence[Interval]]) -> Sequence[Interval]:
    first, *others = branches
    for other in others:
        first = [a | b for a, b in zip(first, other, strict=True)]
    return first


def _while(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Iterate as long as the condition is certainly true; then widen to a fixed point."""
    condition, body = (region.blocks[0] for region in op.regions)
    state = list(ins)
    for _ in range(MAX_TURNS):
        (goes_on,) = run.block(condition, state)
        if goes_on.high == 0:
            return state
        if goes_on.low == 0 or run.op_count > MAX_OPS:
            break
        state = run.block(body, state)
    return _widen(run, op, condition, body, state)


def _widen(
    run: Interpreter,
    op: ir.Operation,
    condition: ir.Block,
    body: ir.Block,
    state: Sequence[Interval],
) -> Sequence[Interval]:
    """Return intervals that hold after any number of iterations."""
    kinds, turn, now = [element_type_of(value) for value in op.results], 0, list(state)
    while True:
        run.block(condition, now)
        wider = [a | b for a, b in zip(now, run.block(body, now), strict=True)]
        if wider == now:
            return now
        turn += 1
        if turn > WIDENING_DELAY:
            wider = [
                a if a == b else kind.limits if kind.is_small else UNKNOWN
                for kind, a, b in zip(kinds, now, wider, strict=True)
            ]
        now = wider


CONTROL: Mapping[str, Rule] = {"case": _case, "if": _if, "while": _while}
"""Interval rules by StableHLO op."""

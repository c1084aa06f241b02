"""Integers of compiled functions in FM64: which ops are exact, and bounds. Imports JAX.

XLA's integers are those of their types, and so are libspu's after the lowering, wherever they are
looked at (:mod:`mplang_spu.lowering.wraps`). So bounds are those of XLA.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir
from mplang_analysis import Interval
from mplang_stablehlo.ext import (
    INTERVAL_RULES,
    Interpreter,
    Precision,
    Step,
    element_type_of,
    op_number,
    target_of,
    walk,
)

from mplang_spu.field_reasons import FRACTIONS, LIMIT, holds, told
from mplang_spu.lowering.bounds import CHOICES
from mplang_spu.ranges import module_of

_EXACT = """
abs add and broadcast_in_dim case clamp compare concatenate constant convert dot_general
dynamic_slice dynamic_update_slice gather if iota maximum mhlo.topk minimum multiply negate not
optimization_barrier or pad reduce reduce_window reshape return reverse scatter select shift_left
shift_right_arithmetic shift_right_logical sign slice sort subtract transpose while xor
"""
EXACT = frozenset(_EXACT.split())
"""Ops that are exact on integers in FM64. Quotients and remainders are floats, which are not."""

_STARTED = {"compare", "maximum", "minimum"}
"""Ops of a reducer whose initial values the lowering clamps, see ``sums.clamp_starts``."""


def inexact_op(code: bytes) -> tuple[int, str] | None:
    """Return the number of the first op of a code that is not certain to be exact, and why.

    Args:
        code: as ``jax.run`` has it.
    """
    try:
        ops = [op for op in walk(module_of(code).operation) if op.name.startswith("stablehlo.")]
    except ValueError as error:  # SPU refuses it
        return 0, str(error)
    ops.sort(key=lambda op: op.name == "stablehlo.constant")  # says less than what takes it
    for op in ops:
        name = target_of(op) or op.name.removeprefix("stablehlo.")
        if any(element_type_of(value).is_float for value in (*op.operands, *op.results)):
            return op_number(op), f"{name} {FRACTIONS}"
        if name not in EXACT:
            return op_number(op), f"{name} is not known to be exact in FM64"
    return None


def bounds(
    code: bytes, inputs: Sequence[Interval]
) -> tuple[Sequence[Interval], Sequence[tuple[int, str]]]:
    """Return the bounds of the results of a code, and which of its integers are out of bounds.

    Args:
        code: of exact ops alone.
        inputs: an interval per operand.

    Returns:
        An interval per result; the number of each op that makes such integers of others, and why.
    """
    (main,) = module_of(code).body.operations
    block = main.operation.regions[0].blocks[0]
    run = Interpreter(Precision(), _RULES)
    given = [_argument(value, x) for value, x in zip(block.arguments, inputs, strict=True)]
    results = run.block(block, given)
    return results, [each for step in run.steps.values() for each in _beyond(step)]


def _argument(value: ir.Value, x: Interval) -> Interval:
    """Return the interval of an operand, with ints as ends, which add exactly."""
    limits = element_type_of(value).limits
    if not x.known:
        return limits
    return Interval(max(limits.low, math.floor(x.low)), min(limits.high, math.ceil(x.high)))


def _beyond(step: Step) -> Iterator[tuple[int, str]]:
    if step.name == "constant":
        return
    operands = zip(step.op.operands, step.operands, strict=True)
    taken = [(v, x) for i, (v, x) in enumerate(operands) if i not in _starts(step.op)]
    if all(_holds(value, x) for value, x in taken):
        taken = list(zip(step.op.results, step.results, strict=True))
        what = step.name
    else:
        taken = [(value, x) for value, x in taken if _is_constant(value)]
        what = f"a constant of {step.name}"
    for value, x in taken:
        if not _holds(value, x):
            yield op_number(step.op), told(what, x)


def _holds(value: ir.Value, x: Interval) -> bool:
    kind = element_type_of(value)
    return not kind.is_integer or kind.bits < 64 or holds(x)


def _is_constant(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Operation) and value.owner.name == "stablehlo.constant"


def _starts(op: ir.Operation) -> range:
    """Return the initial values of a reduction by choice, which the lowering clamps."""
    count = len(op.operands)
    return range(count // 2, count) if _chooses(op) else range(0)


def _chooses(op: ir.Operation) -> bool:
    """Return whether an op reduces some elements to one of them, which it compares."""
    if op.name not in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return False
    inner = {each.operation.name.removeprefix("stablehlo.") for each in op.regions[0].blocks[0]}
    has_elements = 0 not in ir.RankedTensorType(op.operands[0].type).shape
    return has_elements and inner <= CHOICES and not inner.isdisjoint(_STARTED)


def _reduce(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Reduce from the clamped initial values: no element of XLA's is below them."""
    return INTERVAL_RULES["reduce"](run, op, _started(op, ins))


def _reduce_window(
    run: Interpreter, op: ir.Operation, ins: Sequence[Interval]
) -> Sequence[Interval]:
    """Reduce from the clamped initial values; not where windows may have no element but these."""
    rule, half = INTERVAL_RULES["reduce_window"], len(ins) // 2
    found = rule(run, op, _started(op, ins))
    stays = all(
        x.low <= each.low and each.high <= x.high for x, each in zip(ins[:half], found, strict=True)
    )
    return found if stays else rule(run, op, ins)


def _started(op: ir.Operation, ins: Sequence[Interval]) -> list[Interval]:
    starts = _starts(op)
    return [_clamped(x) if i in starts else x for i, x in enumerate(ins)]


def _clamped(x: Interval) -> Interval:
    return Interval(*(max(-LIMIT, min(end, LIMIT - 1)) for end in (x.low, x.high)))


_RULES = {**INTERVAL_RULES, "reduce": _reduce, "reduce_window": _reduce_window}

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

from mplang_spu.fm64 import ADVICE, FRACTIONS, LIMIT, beyond, holds
from mplang_spu.lowering.bounds import CHOICES
from mplang_spu.lowering.wraps import looked_at
from mplang_spu.ranges import module_of

_EXACT = """
abs add and broadcast_in_dim case clamp compare concatenate constant convert dot_general
dynamic_slice dynamic_update_slice gather if iota maximum mhlo.topk minimum multiply negate not
optimization_barrier or pad reduce reduce_window reshape return reverse scatter select shift_left
shift_right_arithmetic shift_right_logical sign slice sort subtract transpose while xor
"""
EXACT = frozenset(_EXACT.split())
"""Ops that are exact on integers in FM64. Quotients and remainders are floats, which are not."""

_COMPARING = {"compare", "maximum", "minimum"}
"""Ops of a reducer whose initial values the lowering clamps, see ``sums.clamp_starts``."""


def inexact_op(code: bytes) -> tuple[int, str] | None:
    """Return the number of the first op of a code that is not certain to be exact, and why.

    Args:
        code: as ``jax.run`` has it.
    """
    try:
        module = module_of(code)  # which ops do not keep
    except ValueError as error:  # SPU refuses it
        return 0, str(error)
    ops = [op for op in walk(module.operation) if op.name.startswith("stablehlo.")]
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
    """Return the bounds of the results of a code, and where it looks at integers out of bounds.

    Args:
        code: of exact ops alone.
        inputs: an interval per operand.

    Returns:
        An interval per result; the number of each op that takes such integers, and why.
    """
    (main,) = module_of(code).body.operations
    block = main.operation.regions[0].blocks[0]
    run = Interpreter(Precision(), _RULES)
    pairs = zip(block.arguments, inputs, strict=True)
    results = run.block(block, [_argument(value, x) for value, x in pairs])
    return results, [each for step in run.steps.values() for each in _beyond(step)]


def _argument(value: ir.Value, x: Interval) -> Interval:
    """Return the interval of an operand, with ints as ends, which add exactly."""
    limits = element_type_of(value).limits
    if not x.known:
        return limits
    return Interval(max(limits.low, math.floor(x.low)), min(limits.high, math.ceil(x.high)))


def _beyond(step: Step) -> Iterator[tuple[int, str]]:
    """Yield what an op looks at and FM64 does not hold; sums and products are right all the same.

    Those are modulo 2^64, as they are in NumPy.
    """
    starts = _starts(step)
    for i in looked_at(step.op, step.op.name.removeprefix("stablehlo.")):
        x = step.operands[i]
        if i not in starts and _is_wide(step.op.operands[i]) and not holds(x):
            yield op_number(step.op), f"{beyond(f'what {step.name} takes', x)}; {ADVICE}"


def _is_wide(value: ir.Value) -> bool:
    kind = element_type_of(value)
    return kind.is_integer and kind.bits == 64


def _starts(step: Step) -> range:
    """Return the initial values of a maximum or the like that no result is one of.

    XLA begins at -2^63, and the lowering clamps that. A window may have no other element.
    """
    half, pairs = len(step.operands) // 2, zip(step.operands, step.results, strict=False)
    if not _chooses(step.op) or not all(map(_is_within, step.operands[:half])):
        return range(0)
    stays = all(x.low <= result.low and result.high <= x.high for x, result in pairs)
    return range(half, 2 * half) if stays or step.name == "reduce" else range(0)


def _chooses(op: ir.Operation) -> bool:
    """Return whether an op reduces some elements to one of them, which it compares."""
    if op.name not in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return False
    inner = {each.operation.name.removeprefix("stablehlo.") for each in op.regions[0].blocks[0]}
    has_elements = 0 not in ir.RankedTensorType(op.operands[0].type).shape
    return has_elements and inner <= CHOICES and not inner.isdisjoint(_COMPARING)


def _is_within(x: Interval) -> bool:
    """Return whether all integers are between those that initial values are clamped to."""
    return x.low > -LIMIT and x.high < LIMIT - 1


def _reduce(run: Interpreter, op: ir.Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Reduce from clamped initial values."""
    half = len(ins) // 2 if _chooses(op) else len(ins)
    return INTERVAL_RULES["reduce"](run, op, [*ins[:half], *map(_clamped, ins[half:])])


def _clamped(x: Interval) -> Interval:
    return Interval(*(max(-LIMIT, min(end, LIMIT - 1)) for end in (x.low, x.high)))


_RULES = {**INTERVAL_RULES, "reduce": _reduce}

"""Range check of StableHLO steps against a field, given their intervals. Imports JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from jaxlib.mlir import ir
from mplang_analysis import Interval, NumberStatus
from mplang_stablehlo.ext import Step, combined, element_type_of

from mplang_spu.field import Field

_Check: TypeAlias = Callable[[Field, Step], NumberStatus]

_MOVES = frozenset(
    [
        "broadcast_in_dim",
        "concatenate",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "optimization_barrier",
        "pad",
        "reshape",
        "reverse",
        "select",
        "slice",
        "sort",
        "transpose",
    ]
)
"""Ops that only move elements; their ranges were checked where they were computed."""

_SEVERITY: tuple[NumberStatus, ...] = ("fits", "vanishes", "overflows", "not known")


def check_step(step: Step, field: Field) -> NumberStatus:
    """Classify a step by whether a field holds its results and intermediate numbers.

    A step with unknown operands ``fits``: the op that made them unknown is already listed.

    Args:
        step: an op with the intervals of its operands and results.
        field: the range limits.

    Returns:
        The worst status among results and intermediate numbers.
    """
    kinds = [element_type_of(value) for value in step.op.results]
    known = all(x.known for x in step.operands)
    if not known or step.name in _MOVES or _is_nonfinite_literal(step):
        return "fits"
    found = [
        field.holds(x, kind.is_float)
        for x, kind in zip(step.results, kinds, strict=True)
        if kind.name != "i1"
    ]
    if all(x.known for x in step.results) and kinds[0].is_float and step.name in _CHECKS:
        found.append(_CHECKS[step.name](field, step))
    return max(found, key=_SEVERITY.index, default="fits")


def _is_nonfinite_literal(step: Step) -> bool:
    """Return whether a step is a literal NaN or infinity."""
    return step.name == "constant" and not step.results[0].known


def _is_literal(value: ir.Value) -> bool:
    """Return whether a value is a literal, possibly broadcast."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name == "stablehlo.constant":
            return True
        if op.name not in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
            return False
        value = op.operands[0]
    return False


def _divide(field: Field, step: Step) -> NumberStatus:
    literal = _is_literal(step.op.operands[1])  # the lowering multiplies by its reciprocal
    divisor: NumberStatus = "fits" if literal else field.divisor(step.operands[1])
    return max(field.product(step.results[0]), divisor, key=_SEVERITY.index)


def _reduce(field: Field, step: Step) -> NumberStatus:
    """Check the products of a region that multiplies; one of several ops is checked op by op."""
    multiplies = combined(step.op.regions[0]) == "multiply"
    return field.product(step.results[0]) if multiplies else "fits"


def _of_result(check: Callable[[Field, Interval], NumberStatus]) -> _Check:
    return lambda field, step: check(field, step.results[0])


def _of_operand(check: Callable[[Field, Interval], NumberStatus]) -> _Check:
    return lambda field, step: check(field, step.operands[0])


_CHECKS: Mapping[str, _Check] = {
    "convolution": _of_result(Field.product),
    "divide": _divide,
    "dot_general": _of_result(Field.product),
    "exponential": _of_result(Field.power),
    "exponential_minus_one": _of_result(Field.power),
    "log": _of_operand(Field.divisor),
    "log_plus_one": _of_operand(Field.divisor),
    "multiply": _of_result(Field.product),
    "power": _of_result(Field.product),
    "reduce": _reduce,
    "reduce_window": _reduce,
    "rsqrt": _of_operand(Field.divisor),
    "sqrt": _of_operand(Field.divisor),
}

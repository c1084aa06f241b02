"""Patterns of ops that form one function, whose interval is tighter than op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_analysis import Interval

from mplang_stablehlo.intervals.element_types import shape_of

ONE = Interval(1, 1)


def definition(value: ir.Value, name: str) -> ir.Operation | None:
    """Return the op that defines a value, if it has a given name.

    Args:
        value: the value.
        name: of a StableHLO op, without the prefix.

    Returns:
        The op or ``None``.
    """
    if isinstance(value.owner, ir.Block):
        return None
    op: ir.Operation = value.owner.operation
    return op if op.name == f"stablehlo.{name}" else None


def logistic_of(
    divide: ir.Operation, interval_of: Callable[[ir.Value], Interval]
) -> tuple[ir.Value, list[ir.Operation]] | None:
    """Match a division ``1 / (1 + exp(-x))``.

    Op by op the exponential of a large number would exceed every limit. Engines merge the four ops,
    as JAX intends.

    Args:
        divide: the division.
        interval_of: returns the interval of a value.

    Returns:
        ``x``, and the other ops of the pattern if they have no other use; ``None`` without a match.
    """
    one, sum = divide.operands
    added = definition(sum, "add")
    if interval_of(one) != ONE or added is None:
        return None
    powers = [definition(value, "exponential") for value in added.operands]
    for power, other in zip(powers, reversed(list(added.operands)), strict=True):
        negated = definition(power.operands[0], "negate") if power is not None else None
        if power is not None and negated is not None and interval_of(other) == ONE:
            chain = [added, power, negated]
            alone = all(len(list(op.results[0].uses)) == 1 for op in chain)
            return negated.operands[0], chain if alone else []
    return None


def is_own_maximum(x: ir.Value, value: ir.Value) -> bool:
    """Return whether a value is the maximum of x over some dimensions, broadcast back.

    Softmax and similar functions subtract it, so that no result is above 0.

    Args:
        x: the operand.
        value: the candidate.

    Returns:
        Whether it matches.
    """
    at = list(range(len(shape_of(value))))  # dimension of x per dimension of the value
    while not isinstance(value.owner, ir.Block):
        op: ir.Operation = value.owner.operation
        if op.name == "stablehlo.broadcast_in_dim":
            at = [at[i] for i in ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])]
            value = op.operands[0]
        elif op.name == "stablehlo.maximum":  # with -inf, the maximum over nothing
            value = next((each for each in op.operands if _is_maximum_of(x, each)), op.operands[0])
        else:
            return _is_maximum_of(x, value) and _stands_at(op, at)
    return False


def _is_maximum_of(x: ir.Value, value: ir.Value) -> bool:
    op = definition(value, "reduce")
    if op is None or len(op.operands) != 2 or op.operands[0] != x:
        return False
    body = [each.operation for each in op.regions[0].blocks[0].operations]
    return len(body) == 2 and body[0].name == "stablehlo.maximum"


def _stands_at(reduce: ir.Operation, at: Sequence[int]) -> bool:
    rank, dropped = (
        len(shape_of(reduce.operands[0])),
        set(ir.DenseI64ArrayAttr(reduce.attributes["dimensions"])),
    )
    return list(at) == [dim for dim in range(rank) if dim not in dropped]


def comparison(op: ir.Operation) -> str:
    """Return the direction of a comparison."""
    return str(stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value)

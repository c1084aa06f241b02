"""Conditions of groups on shares, with SQL's third value where something is null."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from mplang_joins.across.plan import Condition
from mplang_joins.rows import Tensor


class GroupNumber(NamedTuple):
    """A number for each group.

    Attributes:
        value: it, times a power of ten.
        scale: this power; ``None`` of floats.
        present: whether it is not null; ``None`` if it never is.
    """

    value: Tensor
    scale: int | None
    present: Tensor | None = None


_COMPARE: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
COMPARISONS = tuple(_COMPARE)
BEYOND = 1 << 61
"""Size that no integer has which fits."""


def holds(condition: Condition, numbers: Sequence[GroupNumber]) -> tuple[Tensor, Tensor]:
    """Return where a condition is true, and where it is false; it is neither where it is null.

    Args:
        condition: ``("and", a, b)``, ``("or", a, b)``, ``("not", a)`` or a comparison, such as
            ``("ge", x, y)``, of ``("aggregate", 0)``, ``("label", values)``, ``("text", "a")`` and
            ``("constant", "4")``; a constant is the second operand.
        numbers: the aggregates.

    Example:
        >>> three = GroupNumber(np.array([2, 3, 4]), 0)
        >>> true, false = holds(("ge", ("aggregate", 0), ("constant", "3")), [three])
        >>> true.tolist(), false.tolist()
        ([False, True, True], [True, False, False])
    """
    operator, *operands = condition
    if operator in _COMPARE:
        left, right = (_operand(each, numbers) for each in operands)
        compared = _compared(operator, left, right)
        there = [each.present for each in (left, right) if each.present is not None]
        if not there:
            return compared, ~compared
        known = there[0] if len(there) == 1 else there[0] & there[1]
        return compared & known, ~compared & known
    parts = [holds(each, numbers) for each in operands]
    if operator == "not":
        ((true, false),) = parts
        return false, true
    (true, false), (other, wrong) = parts
    if operator == "and":
        return true & other, false | wrong
    return true | other, false & wrong


def _operand(operand: Condition, numbers: Sequence[GroupNumber]) -> GroupNumber:
    kind, value = operand
    if kind == "aggregate":
        return numbers[value]
    if kind == "label":
        return GroupNumber(np.array(value), None if type(value[0]) is str else 0)
    return GroupNumber(value if kind == "text" else Decimal(value), None)


def _compared(operator: str, left: GroupNumber, right: GroupNumber) -> Tensor:
    """Return how numbers compare; those on shares are never multiplied, as they might not fit."""
    if isinstance(right.value, Decimal):
        return _with_constant(operator, left, right.value)
    if left.scale is None or right.scale is None:
        return _COMPARE[operator](left.value, right.value)
    scale = max(left.scale, right.scale)
    return _COMPARE[operator](_scaled(left, scale), _scaled(right, scale))


def _scaled(number: GroupNumber, scale: int) -> Tensor:
    """Return numbers in a smaller unit, if they are not: these are labels, which are public."""
    if number.scale is None or number.scale == scale:
        return number.value
    factor = 10 ** (scale - number.scale)
    return np.array([min(max(int(v) * factor, -BEYOND), BEYOND) for v in number.value])


def _with_constant(operator: str, number: GroupNumber, constant: Decimal) -> Tensor:
    """Return how numbers compare with a constant, of which integers see a whole one."""
    if number.scale is None:
        return _COMPARE[operator](number.value, float(constant))
    exact = constant.scaleb(number.scale)
    rounds = math.ceil if operator in ("ge", "lt") else math.floor
    whole = min(max(rounds(exact), -BEYOND), BEYOND)
    if operator in ("eq", "ne") and whole != exact:
        never = number.value < -BEYOND  # of all that fit
        return never if operator == "eq" else ~never
    return _COMPARE[operator](number.value, whole)

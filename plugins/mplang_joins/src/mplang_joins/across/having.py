"""Conditions of groups on shares, with SQL's third value where something is null."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from mplang_joins.across.plan import Condition
from mplang_joins.rows import Tensor


class GroupNumber(NamedTuple):
    """A number for each group.

    Attributes:
        value: it, times a power of ten.
        scale: this power; ``None`` of floats.
        present: whether it is no null; ``None`` if it never is.
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


def holds(condition: Condition, numbers: Sequence[GroupNumber]) -> tuple[Tensor, Tensor]:
    """Return where a condition is true, and where it is false; it is neither where it is null.

    Args:
        condition: ``("and", a, b)``, ``("or", a, b)``, ``("not", a)`` or a comparison, such as
            ``("ge", x, y)``, of ``("aggregate", 0)``, ``("label", values)``, ``("text", "a")`` and
            ``("constant", "4")``.
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
        return GroupNumber(np.array(value), 0 if type(value[0]) is not str else None)
    if kind == "text":
        return GroupNumber(value, None)
    number = Decimal(value)
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent if isinstance(exponent, int) else 0)
    return GroupNumber(int(number.scaleb(scale)), scale)


def _compared(operator: str, left: GroupNumber, right: GroupNumber) -> Tensor:
    if left.scale is not None and right.scale is not None:
        scale = max(left.scale, right.scale)
        sides = (each.value * 10 ** (scale - each.scale) for each in (left, right))  # type: ignore[operator]
        return _COMPARE[operator](*sides)
    return _COMPARE[operator](_float(left), _float(right))


def _float(number: GroupNumber) -> Tensor:
    if number.scale is None:
        return number.value
    if isinstance(number.value, int):
        return number.value / 10**number.scale
    return jnp.asarray(number.value).astype("float64") / 10**number.scale

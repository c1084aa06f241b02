"""Units of integers: cents and other parts of numbers, days and parts of seconds."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

_PARTS = re.compile(r"1|0\.0{0,17}1")
_SECONDS = {
    "days": Fraction(86_400),
    **{name: Fraction(1, 10 ** (3 * i)) for i, name in enumerate(("s", "ms", "us", "ns"))},
}
_NUMBERS = re.compile(r"bool|u?int\d+|decimal128\(\d+, (\d+)\)")
_TIMES = re.compile(r"(?:timestamp|time64)\[(\w+)")


class Step(NamedTuple):
    """Size of the steps in which numbers or times are counted.

    Attributes:
        size: the size, of times in seconds.
        is_time: whether it is one of times.
    """

    size: Fraction
    is_time: bool


def step_of_unit(unit: str) -> Step:
    """Return the step that a unit stands for.

    Raises:
        TypeError: it is none.

    Example:
        >>> step_of_unit("cents").size, step_of_unit("days").size
        (Fraction(1, 100), Fraction(86400, 1))
    """
    if unit in _SECONDS:
        return Step(_SECONDS[unit], True)
    part = "0.01" if unit == "cents" else unit
    if not _PARTS.fullmatch(part):
        raise TypeError(
            "a unit of numbers is 1, cents, or a part such as 0.001, one of dates and times days, "
            f"s, ms, us or ns, got {unit!r}"
        )
    return Step(Fraction(part), False)


def step_of_type(kind: str) -> Step | None:
    """Return the step in which a column's type counts; ``None`` if it counts nothing.

    Example:
        >>> step_of_type("decimal128(12, 2)").size, step_of_type("timestamp[ms]").size
        (Fraction(1, 100), Fraction(1, 1000))
    """
    if kind == "date32[day]":
        return Step(_SECONDS["days"], True)
    time, number = _TIMES.match(kind), _NUMBERS.fullmatch(kind)
    if time:
        return Step(_SECONDS[time[1]], True)
    return Step(Fraction(1, 10 ** int(number[1] or 0)), False) if number else None


def steps_per_unit(column: str, kind: str, unit: str) -> Fraction:
    """Return how many steps of a column's type a unit has.

    Raises:
        TypeError: the unit is none of that type.

    Example:
        >>> steps_per_unit("pay", "decimal128(12, 2)", "cents")
        Fraction(1, 1)
        >>> steps_per_unit("at", "timestamp[us]", "s")
        Fraction(1000000, 1)
    """
    step, wanted = step_of_type(kind), step_of_unit(unit)
    if step is None:
        raise TypeError(
            f"column {column!r} is of the type {kind}; decimals, integers, bools, dates and times "
            "are counted in units"
        )
    if step.is_time != wanted.is_time:
        right = "days, s, ms, us or ns" if step.is_time else "1, cents, or a part such as 0.001"
        raise TypeError(f"column {column!r} is of the type {kind}, whose unit is {right}: {unit!r}")
    return wanted.size / step.size

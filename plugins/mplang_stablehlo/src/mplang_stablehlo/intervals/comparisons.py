"""Comparisons of intervals: true, false, or either."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mplang_analysis import Interval

TRUE, FALSE, EITHER = Interval(1, 1), Interval(0, 0), Interval(0, 1)


def compare(
    direction: str, x: Interval, y: Interval, *, same: bool = False, total: bool = False
) -> Interval:
    """Return whether a comparison of any two numbers holds.

    Args:
        direction: ``LT``, ``GE``, …
        x: the left operand.
        y: the right operand.
        same: whether both are the same value.
        total: whether -0 is less than 0, and NaN greater than all numbers.

    Returns:
        An interval of bools: ``TRUE``, ``FALSE`` or ``EITHER``.

    Example:
        >>> compare("LT", Interval(0, 1), Interval(2, 3)), compare("EQ", EITHER, EITHER)
        (Interval(low=1, high=1), Interval(low=0, high=1))
    """
    if x.open or y.open or total:
        return EITHER  # there may be a NaN, or zeros of both signs
    if same:
        return TRUE if direction in ("EQ", "LE", "GE") else FALSE
    return _RULES[direction](x, y)


def _less(x: Interval, y: Interval) -> Interval:
    return TRUE if x.high < y.low else FALSE if x.low >= y.high else EITHER


def _equal(x: Interval, y: Interval) -> Interval:
    if x.low == x.high == y.low == y.high:
        return TRUE
    return FALSE if x.high < y.low or y.high < x.low else EITHER


def _not(x: Interval) -> Interval:
    return Interval(1 - x.high, 1 - x.low)


_RULES: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "LT": _less,
    "GT": lambda x, y: _less(y, x),
    "GE": lambda x, y: _not(_less(x, y)),
    "LE": lambda x, y: _not(_less(y, x)),
    "EQ": _equal,
    "NE": lambda x, y: _not(_equal(x, y)),
}

"""Precision of engines: errors relative to exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from mplang_analysis import UNKNOWN, Interval

from mplang_stablehlo.intervals.element_types import ElementType

_KEEP_ZERO = frozenset(["", "add", "divide", "multiply", "subtract"])


@dataclass(frozen=True, slots=True)
class Precision:
    """Error bounds of single ops on an engine.

    Attributes:
        relative: relative to the magnitude of the result; that of its element type if ``None``.
        step: the distance of neighboring fixed-point numbers; 0 in floating point.
        errors: additional absolute error by op.
        wraps: whether integers wrap around at the limits of their type.
    """

    relative: float | None = None
    step: float = 0.0
    errors: Mapping[str, float] = field(default_factory=dict)
    wraps: bool = True

    def round(self, kind: ElementType, x: Interval, op: str = "", terms: int = 1) -> Interval:
        """Widen an exact result by the engine's error, keeping its sign.

        Args:
            kind: the element type of the result.
            x: the exact result.
            op: the op's name.
            terms: the number of summands.

        Returns:
            The interval; unknown if it exceeds the limits of the type.
        """
        if kind.is_integer:
            return self.wrap(kind, x)
        if not x.known or not kind.is_float:
            return UNKNOWN
        if x.low == x.high == 0 and op in _KEEP_ZERO:
            return x
        relative = self.relative if self.relative is not None else 8 * kind.epsilon
        relative += terms * kind.epsilon
        absolute = max(4 * self.step, kind.tiny) + self.errors.get(op, 0.0)
        low = x.low - abs(x.low) * relative - absolute
        high = x.high + abs(x.high) * relative + absolute
        wider = Interval(
            max(low, 0.0) if x.low >= 0 else low, min(high, 0.0) if x.high <= 0 else high
        )
        return wider if wider.largest <= kind.limits.largest else UNKNOWN

    def wrap(self, kind: ElementType, x: Interval) -> Interval:
        """Return an integer result after wrapping.

        Args:
            kind: the element type of the result.
            x: the exact result.

        Returns:
            ``x`` if its type holds it; otherwise all numbers of the type, or unknown.
        """
        limits = kind.limits
        if limits.low <= x.low and x.high <= limits.high:
            return x
        return limits if self.wraps or kind.name == "i1" else UNKNOWN

    def constant(self, kind: ElementType, x: Interval) -> Interval:
        """Return a literal as the engine represents it.

        Args:
            kind: its element type.
            x: the literal's elements.

        Returns:
            The interval.
        """
        if not self.step or not kind.is_float or x.low == x.high == round_or_nan(x.low):
            return x
        low, high = x.low - self.step, x.high + self.step
        return Interval(
            max(low, 0.0) if x.low >= 0 else low, min(high, 0.0) if x.high <= 0 else high
        )


def round_or_nan(x: float) -> float:
    """Return the nearest integer; NaN for infinities."""
    return float(round(x)) if math.isfinite(x) else math.nan


FLOATING = Precision()
"""IEEE 754 as XLA implements it: errors of a few units in the last place."""


def fixed_point(fraction_bits: int) -> Precision:
    """Return the precision of SPU, which approximates most functions.

    Its results are within 1e-3 of the exact ones plus a few steps of 2^-f; some functions are
    coarser. A positive number near 0 may come out a few steps below 0, which the intervals ignore.
    """
    coarse = {"tanh": 5e-3, "logistic": 1e-2, "mhlo.erf": 1e-3}
    return Precision(1e-3, 2.0**-fraction_bits, coarse, wraps=False)

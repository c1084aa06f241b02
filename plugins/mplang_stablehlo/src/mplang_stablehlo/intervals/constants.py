"""Intervals of literals."""

from __future__ import annotations

import numpy as np
from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval, hull

from mplang_stablehlo.intervals.element_types import ElementType

_READABLE = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64")
"""Types that MLIR converts to NumPy; its bindings crash on others."""


def interval_of(value: ir.Attribute, kind: ElementType) -> Interval:
    """Return the smallest and largest element of a literal.

    Args:
        value: the attribute of a constant.
        kind: its element type.

    Returns:
        The interval; unknown if it is not readable.
    """
    if not isinstance(value, ir.DenseElementsAttr):
        return UNKNOWN
    if kind.name == "i1" and not value.is_splat:
        return Interval(0, 1)  # bits are packed; not a splat, so both values occur
    if value.is_splat and (kind.is_float or kind.is_integer):
        return hull([_splat(value, kind)])
    if kind.name not in _READABLE:
        return UNKNOWN
    array = np.asarray(value)
    return hull([array.min().item(), array.max().item()]) if array.size else Interval(0, 0)


def _splat(value: ir.DenseElementsAttr, kind: ElementType) -> float:
    element = value.get_splat_value()
    number = element if isinstance(element, int | float) else element.value
    if not kind.is_integer:
        return float(number)
    if kind.name == "i1":
        return int(bool(number))
    below = number < kind.limits.low  # MLIR returns unsigned numbers as signed
    return int(number) + (1 << kind.bits if below else 0)

"""Element types of tensors: their limits and precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxlib.mlir import ir
from mplang_analysis import UNKNOWN, Interval

_FLOATS = {"f16": (5, 11), "bf16": (8, 8), "f32": (8, 24), "f64": (11, 53)}
"""Bits of the exponent and of the significand."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """Element type of a tensor.

    Args:
        name: in MLIR's notation, ``f32``.

    Example:
        >>> ElementType("i8").limits, ElementType("ui8").limits, ElementType("i1").limits
        (Interval(low=-128, high=127), Interval(low=0, high=255), Interval(low=0, high=1))
        >>> ElementType("f32").limits.high
        3.4028234663852886e+38
    """

    name: str

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.name in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type; bool is one."""
        return self.name.startswith(("i", "ui")) and self.name.strip("ui").isdigit()

    @property
    def bits(self) -> int:
        """Size of an integer in bits."""
        return int(self.name.strip("ui"))

    @property
    def is_small(self) -> bool:
        """Whether the limits are informative: bools, and integers up to 16 bits."""
        return self.is_integer and self.bits <= 16

    @property
    def limits(self) -> Interval:
        """Smallest and largest number; unknown for complex types."""
        if self.is_float:
            exponent, significand = _FLOATS[self.name]
            largest = math.ldexp(2 - math.ldexp(1, 1 - significand), 2 ** (exponent - 1) - 1)
            return Interval(-largest, largest)
        if not self.is_integer:
            return UNKNOWN
        if self.name.startswith("u") or self.name == "i1":
            return Interval(0, 2**self.bits - 1)
        return Interval(-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1)

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next number."""
        return math.ldexp(1, 1 - _FLOATS[self.name][1])

    @property
    def tiny(self) -> float:
        """Smallest normal number; smaller ones may be flushed to 0."""
        return math.ldexp(1, 2 - 2 ** (_FLOATS[self.name][0] - 1))


def element_type_of(value: ir.Value) -> ElementType:
    """Return the element type of a tensor."""
    return ElementType(str(ir.RankedTensorType(value.type).element_type))


def shape_of(value: ir.Value) -> list[int]:
    """Return the shape of a tensor."""
    return list(ir.RankedTensorType(value.type).shape)

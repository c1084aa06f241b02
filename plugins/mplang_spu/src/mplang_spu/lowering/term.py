"""Expression builder: MLIR values with Python's operators. Imports JAX."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

Number: TypeAlias = "Term | float | int | bool"


@contextlib.contextmanager
def before(op: ir.Operation) -> Iterator[None]:
    """Insert ops before another, at its source line."""
    with op.location, ir.InsertionPoint(op):
        yield


def replace(op: ir.Operation, *values: Term) -> None:
    """Replace the results of an op, and erase the op.

    Args:
        op: the op.
        *values: one per result.
    """
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value.value)
    op.erase()


def is_float(value: ir.Value) -> bool:
    """Return whether a value is a tensor of floats."""
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)


def made_by(value: ir.Value, *names: str) -> ir.Operation | None:
    """Return the op that gives a value, if it has one of these names; ``None`` otherwise."""
    op = value.owner
    if isinstance(op, ir.Operation) and op.name.removeprefix("stablehlo.") in names:
        return op
    return None


def splat(kind: ir.Type, number: float | int | bool) -> Term:
    """Insert a constant with one number in all elements.

    Args:
        kind: a ranked tensor type.
        number: the number.

    Returns:
        The constant.
    """
    element = ir.RankedTensorType(kind).element_type
    if isinstance(element, ir.FloatType):
        made: Any = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(element, float(number)))
    elif element.width == 1:
        made = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, int(number)))
    else:  # Python's IntegerAttr is limited to int64
        made = ir.Attribute.parse(f"dense<{int(number)}> : {kind}")
    return Term(hlo.constant(made))


def numpy_type(element: ir.Type) -> np.dtype[Any]:
    """Return NumPy's type of an element type."""
    if element.width == 1:
        return np.dtype(bool)
    unsigned = isinstance(element, ir.IntegerType) and element.is_unsigned
    letter = "f" if isinstance(element, ir.FloatType) else "u" if unsigned else "i"
    return np.dtype(f"{letter}{element.width // 8}")


def constant(kind: ir.Type, numbers: np.ndarray[Any, Any]) -> Term:
    """Insert a constant from an array.

    Args:
        kind: a ranked tensor type.
        numbers: an array that broadcasts to its shape.

    Returns:
        The constant.
    """
    tensor = ir.RankedTensorType(kind)
    whole = np.broadcast_to(numbers, list(tensor.shape))
    made = whole.astype(numpy_type(tensor.element_type), order="C")  # also of no dimensions
    return Term(hlo.constant(ir.DenseElementsAttr.get(made)))


class Term:
    """MLIR value whose Python operators insert elementwise ops of StableHLO.

    Args:
        value: a tensor; a scalar is broadcast to the shape of the other operand.
    """

    def __init__(self, value: ir.Value) -> None:
        self.value = value
        self.kind = ir.RankedTensorType(value.type)

    @property
    def shape(self) -> list[int]:
        """Dimensions of the tensor."""
        return list(self.kind.shape)

    def like(self, number: Number) -> Term:
        """Return a number or a scalar, broadcast to the shape of this term."""
        if not isinstance(number, Term):
            return splat(self.kind, number)
        return number if number.shape == self.shape else number.spread(self.shape)

    def spread(self, shape: Sequence[int], dims: Sequence[int] = ()) -> Term:
        """Broadcast to a shape.

        Args:
            shape: of the result.
            dims: per dimension of this term, that of the result.

        Returns:
            The result.
        """
        kind = ir.RankedTensorType.get(list(shape), self.kind.element_type)
        return Term(hlo.broadcast_in_dim(kind, self.value, list(dims)))

    def reshape(self, shape: Sequence[int]) -> Term:
        """Return the same elements in another shape."""
        if list(shape) == self.shape:
            return self
        kind = ir.RankedTensorType.get(list(shape), self.kind.element_type)
        return Term(hlo.reshape(kind, self.value))

    def to(self, element: ir.Type) -> Term:
        """Convert the elements."""
        kind = ir.RankedTensorType.get(self.shape, element)
        return Term(hlo.convert(kind, self.value))

    def part(self, axis: int, start: int, stop: int) -> Term:
        """Return a slice along one axis.

        Args:
            axis: the axis.
            start: first index.
            stop: index after the last one.

        Returns:
            The slice.
        """
        starts, stops = [0] * len(self.shape), list(self.shape)
        starts[axis], stops[axis] = start, stop
        return Term(hlo.slice(self.value, starts, stops, [1] * len(self.shape)))

    def __add__(self, other: Number) -> Term:
        return Term(hlo.add(self.value, self.like(other).value))

    def __sub__(self, other: Number) -> Term:
        return Term(hlo.subtract(self.value, self.like(other).value))

    def __rsub__(self, other: Number) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Number) -> Term:
        return Term(hlo.multiply(self.value, self.like(other).value))

    def __truediv__(self, other: Number) -> Term:
        return Term(hlo.divide(self.value, self.like(other).value))

    def __rtruediv__(self, other: Number) -> Term:
        return self.like(other) / self

    def __neg__(self) -> Term:
        return Term(hlo.negate(self.value))

    def __and__(self, other: Term) -> Term:
        return Term(hlo.and_(self.value, other.value))

    def __xor__(self, other: Term) -> Term:
        return Term(hlo.xor(self.value, other.value))

    def __invert__(self) -> Term:
        return Term(hlo.not_(self.value))

    def __or__(self, other: Term) -> Term:
        return Term(hlo.or_(self.value, other.value))

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Number) -> Term:
        return self._compare(other, "LT")

    def __gt__(self, other: Number) -> Term:
        return self._compare(other, "GT")

    def __ge__(self, other: Number) -> Term:
        return self._compare(other, "GE")

    def equals(self, other: Number) -> Term:
        """Compare for equality; ``==`` is Python's own."""
        return self._compare(other, "EQ")

    def _compare(self, other: Number, direction: str) -> Term:
        how = hlo.ComparisonDirectionAttr.get(direction)
        return Term(hlo.compare(self.value, self.like(other).value, how))

    def magnitude(self) -> Term:
        """Return the absolute value."""
        return Term(hlo.abs(self.value))

    def at_least(self, low: float) -> Term:
        """Return the maximum of this term and a number."""
        return Term(hlo.maximum(self.value, self.like(low).value))

    def clamp(self, low: float, high: float) -> Term:
        """Return this term clamped to a range.

        Args:
            low: smallest number.
            high: largest number.

        Returns:
            The result.
        """
        return Term(hlo.clamp(self.like(low).value, self.value, self.like(high).value))


def where(condition: Term, yes: Number, no: Term) -> Term:
    """Select element by element.

    Args:
        condition: bools.
        yes: where it is true.
        no: where it is false.

    Returns:
        A tensor like ``no``.
    """
    return Term(hlo.select(condition.value, no.like(yes).value, no.value))

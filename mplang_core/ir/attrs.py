"""Attribute values of ops: a closed union of immutable data, and its visitor.

Plugins add subclasses of :class:`mplang_core.Attribute`; ``docs/wire.md`` describes how to add
another kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, Never, TypeAlias, TypeVar

import numpy as np

from mplang_core.mask import Mask
from mplang_core.types import Attribute, DType, array_of, frozen

AttrValue: TypeAlias = (
    bool
    | int
    | float
    | str
    | bytes
    | tuple["AttrValue", ...]
    | Mapping[str, "AttrValue"]
    | np.ndarray[Any, Any]
    | Mask
    | Attribute
    | None
)
"""A normalized attribute value. :class:`AttrVisitor` has one method for each kind."""

INT_LIMIT = 1 << 63

T = TypeVar("T")


class AttrVisitor(ABC, Generic[T]):
    """Visitor of attribute values, with one method per kind.

    All code that treats kinds differently is a subclass, so mypy reports each place where the
    case of a new kind is missing.
    """

    def visit(self, value: AttrValue) -> T:
        """Call the method of a value's kind.

        Raises:
            TypeError: the value is not an attribute value.
        """
        match value:
            case Mask():
                return self.visit_mask(value)
            case None:
                return self.visit_none()
            case bool():  # before int, its base class
                return self.visit_bool(value)
            case int():
                return self.visit_int(value)
            case float():
                return self.visit_float(value)
            case str():
                return self.visit_str(value)
            case bytes():
                return self.visit_bytes(value)
            case tuple():
                return self.visit_tuple(value)
            case np.ndarray():
                return self.visit_array(value)
            case Attribute():
                return self.visit_type(value)
            case Mapping():
                return self.visit_mapping(value)
            case _:
                raise _refused(value)

    @abstractmethod
    def visit_none(self) -> T:
        """Visit ``None``."""

    @abstractmethod
    def visit_bool(self, value: bool) -> T:
        """Visit a bool."""

    @abstractmethod
    def visit_int(self, value: int) -> T:
        """Visit an integer of at most 64 bits."""

    @abstractmethod
    def visit_float(self, value: float) -> T:
        """Visit a float."""

    @abstractmethod
    def visit_str(self, value: str) -> T:
        """Visit a string."""

    @abstractmethod
    def visit_bytes(self, value: bytes) -> T:
        """Visit bytes."""

    @abstractmethod
    def visit_tuple(self, value: tuple[AttrValue, ...]) -> T:
        """Visit a tuple."""

    @abstractmethod
    def visit_array(self, value: np.ndarray[Any, Any]) -> T:
        """Visit a constant."""

    @abstractmethod
    def visit_mask(self, value: Mask) -> T:
        """Visit a mask."""

    @abstractmethod
    def visit_type(self, value: Attribute) -> T:
        """Visit a base type, or an attribute of a plugin."""

    @abstractmethod
    def visit_mapping(self, value: Mapping[str, AttrValue]) -> T:
        """Visit a mapping; a normalized one has sorted keys."""


def normalize(value: Any) -> AttrValue:
    """Return the canonical immutable form of a value.

    Lists become tuples, NumPy scalars Python numbers, arrays read-only and contiguous.

    Args:
        value: an attribute value, or an object that normalizes to one.

    Returns:
        The attribute value.

    Raises:
        TypeError: the value is not data (a function, an object, a set, …).
        ValueError: an integer has more than 64 bits, or a text lone surrogates.

    Example:
        >>> normalize([1, (2.5, "x"), np.int64(3)])
        (1, (2.5, 'x'), 3)
    """
    if isinstance(value, np.generic):
        plain = value.item()
        if isinstance(plain, np.generic):  # for example np.longdouble
            raise TypeError(f"{type(value).__name__} is not an attribute value")
        return normalize(plain)
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, DType):
        value = value.value
    return _normalizer.visit(value)


def _refused(value: Never) -> TypeError:
    """Return the error for an unsupported value; mypy reports an unhandled kind by ``Never``."""
    return TypeError(
        f"{type(value).__name__} is not an attribute value, which is a number, a string or a tuple "
        "of them; a list of numbers is an array, so write a tuple, as in values=(1, 2)"
    )


class _Normalizer(AttrVisitor[AttrValue]):
    def _unchanged(self, value: T) -> T:
        return value

    visit_bool = visit_bytes = visit_mask = _unchanged

    def visit_none(self) -> AttrValue:
        return None

    def visit_int(self, value: int) -> AttrValue:
        if not -INT_LIMIT <= value < 2 * INT_LIMIT:
            raise ValueError(f"an attribute has integers of 64 bits, got {value.bit_length()} bits")
        return value

    def visit_float(self, value: float) -> AttrValue:
        return math.nan if math.isnan(value) else value  # one canonical NaN

    def visit_str(self, value: str) -> AttrValue:
        value.encode()  # lone surrogates are not text
        return value

    def visit_type(self, value: Attribute) -> AttrValue:
        normalize(value.params())  # they are sent, too
        return value

    def visit_tuple(self, value: tuple[Any, ...]) -> AttrValue:
        return tuple(normalize(item) for item in value)

    def visit_array(self, value: np.ndarray[Any, Any]) -> AttrValue:
        return frozen(array_of(value))

    def visit_mapping(self, value: Mapping[str, Any]) -> AttrValue:
        if not all(isinstance(name, str) for name in value):
            raise TypeError("a mapping in an attribute has str keys only")
        return MappingProxyType({name: normalize(value[name]) for name in sorted(value)})


_normalizer = _Normalizer()

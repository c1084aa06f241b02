"""Equality of attribute values in kind and data, by which the tests judge what comes back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from mplang_core.ir import AttrValue, AttrVisitor


def same(a: AttrValue, b: AttrValue) -> bool:
    """Return whether two normalized values are equal in kind and data.

    Example:
        >>> same(1, 1.0), same(0.0, -0.0), same((1, "x"), (1, "x"))
        (False, False, True)
    """
    return key(a) == key(b)


def key(value: AttrValue) -> Hashable:
    """Return a dictionary key for a normalized value; equal data have equal keys."""
    return _keys.visit(value)


class _Keys(AttrVisitor[Hashable]):
    def _typed(self, value: Hashable) -> Hashable:
        return type(value), value

    visit_bool = visit_int = visit_str = visit_bytes = visit_mask = visit_type = _typed

    def visit_none(self) -> Hashable:
        return None

    def visit_float(self, value: float) -> Hashable:
        return float, value.hex()

    def visit_tuple(self, value: tuple[AttrValue, ...]) -> Hashable:
        return tuple, tuple(map(self.visit, value))

    def visit_array(self, value: np.ndarray[Any, Any]) -> Hashable:
        return np.ndarray, value.dtype, value.shape, value.tobytes()

    def visit_mapping(self, value: Mapping[str, AttrValue]) -> Hashable:
        return dict, frozenset((name, self.visit(value[name])) for name in value)


_keys = _Keys()

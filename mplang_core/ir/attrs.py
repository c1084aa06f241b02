"""Attributes of ops: plain, immutable data, the same in memory, text and bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from mplang_core.mask import Mask
from mplang_core.types import BaseType, DType, frozen

__all__ = ["AttrValue", "normalize", "same"]

AttrValue: TypeAlias = Any
"""None, bool, int, float, str, bytes, Mask, BaseType, NumPy array, tuple or mapping of these."""

INT_LIMIT = 1 << 63


def normalize(value: Any) -> AttrValue:
    """Return the one immutable form of a value.

    Lists become tuples, NumPy scalars Python numbers, arrays read-only and contiguous.

    Raises:
        TypeError: the value is no data (a function, an object, a set, …).
        ValueError: an integer beyond 64 bits.

    Example:
        >>> normalize([1, (2.5, "x"), np.int64(3)])
        (1, (2.5, 'x'), 3)
    """
    if isinstance(value, np.generic):
        plain = value.item()
        if isinstance(plain, np.generic):
            raise TypeError(f"{type(value).__name__} is no attribute value")
        return normalize(plain)
    if isinstance(value, float) and math.isnan(value):
        return math.nan  # all NaNs are one
    if value is None or isinstance(value, bool | float | str | bytes | Mask | BaseType):
        return value
    if isinstance(value, int):
        if not -INT_LIMIT <= value < 2 * INT_LIMIT:
            raise ValueError(f"an attribute holds integers of 64 bits, got {value}")
        return value
    if isinstance(value, DType):
        return value.value
    if isinstance(value, np.ndarray):
        return frozen(value)
    if isinstance(value, list | tuple):
        return tuple(normalize(item) for item in value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a mapping in an attribute has str keys only")
        return MappingProxyType({key: normalize(value[key]) for key in sorted(value)})
    raise TypeError(f"{type(value).__name__} is no attribute value")


def same(a: AttrValue, b: AttrValue) -> bool:
    """Tell whether two normalized values are the same data, ``1`` and ``1.0`` apart."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()
    return type(a) is type(b) and bool(a == b)

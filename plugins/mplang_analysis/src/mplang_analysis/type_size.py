"""Sizes of types: payload and bytes of a value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from mplang_core import BaseType, Form, TensorType


def payload(kind: BaseType) -> BaseType:
    """Return what a type stands for: what is shared or encrypted, else the type itself.

    Example:
        >>> print(payload(TensorType("f32", (3,))))
        f32[3]
    """
    if kind.form is Form.PLAIN:
        return kind
    inner = [param for param in kind.params() if isinstance(param, BaseType)]
    return payload(inner[0]) if inner else kind


@lru_cache(maxsize=1024)
def bytes_of(kind: BaseType) -> int | None:
    """Estimate the bytes of a value, or return ``None`` where the type does not tell.

    A plugin's type is asked for its attribute ``nbytes``; one without it counts as much as
    the tensor that is within.

    Example:
        >>> bytes_of(TensorType("f32", (2, 3))), bytes_of(TensorType("bool", (5,)))
        (24, 5)
    """
    known: Any = getattr(kind, "nbytes", None)
    if isinstance(known, int):
        return known
    inner = payload(kind)
    if not isinstance(inner, TensorType):
        return None
    bits = re.search(r"\d+", inner.dtype.value)
    return inner.size * (int(bits[0]) // 8 if bits else 1)


@lru_cache(maxsize=1024)
def characters_of(kind: BaseType) -> int:
    """Return the length of a type's text; programs have few types and many rows."""
    return len(str(kind))

"""Casts to a type that Ibis infers already, which it drops. Imports Ibis.

What it infers is not always what DuckDB gives: the mean of decimals is a double there, and an
int32 that is shifted stays one. A user who writes a cast means that type.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import ibis.expr.operations as ops  # type: ignore[import-untyped]
from ibis.expr.types import Value  # type: ignore[import-untyped]

_is_kept: ContextVar[bool] = ContextVar("_is_kept", default=False)
_cast = Value.cast


@contextmanager
def casts_kept() -> Iterator[None]:
    """Keep casts of values to their inferred types, within a function that is traced.

    Example:
        >>> import ibis
        >>> t = ibis.table({"pay": "decimal(10, 2)"}, name="t")
        >>> t.pay.mean().cast("decimal(10, 2)").op().__class__.__name__
        'Mean'
        >>> with casts_kept():
        ...     t.pay.mean().cast("decimal(10, 2)").op().__class__.__name__
        'Alias'
    """
    token = _is_kept.set(True)
    try:
        yield
    finally:
        _is_kept.reset(token)


@functools.wraps(_cast)
def _cast_kept(self: Any, target_type: Any, /) -> Any:
    made = _cast(self, target_type)
    if made is not self or not _is_kept.get() or self.type().is_geospatial() or _is_read(self.op()):
        return made
    return ops.Cast(self, to=target_type).to_expr().name(self.get_name())


def _is_read(op: Any) -> bool:
    """Return whether a value is a literal or a column that is given, whose type DuckDB has, too."""
    if isinstance(op, ops.Literal | ops.Cast):
        return True
    return isinstance(op, ops.Field) and isinstance(op.rel, ops.UnboundTable)


Value.cast = _cast_kept

"""Results of parties: their types, and the outcome of a run."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np

from mplang_core import BaseType, TableType, TensorType
from mplang_core.ext import AbortedError, WireError, type_classes


def outcome_of(future: Future[list[Any]]) -> list[Any] | BaseException:
    """Return a party's results, or its error, as :meth:`SimpHost._collect` gives them.

    Example:
        >>> outcome_of(Future())
        AbortedError('it did not end in time')
    """
    if not future.done():
        return AbortedError("it did not end in time")
    return future.exception() or future.result()


def type_of(value: Any) -> BaseType:
    """Return the type that a value is of.

    Raises:
        WireError: nothing that is installed knows.

    Example:
        >>> print(type_of(np.zeros((2, 3), np.float32)))
        f32[2, 3]
    """
    if isinstance(value, np.ndarray | np.generic):
        return TensorType.of(value)
    kind = getattr(value, "type", None)
    if isinstance(kind, BaseType):
        return kind
    if hasattr(value, "schema"):
        return TableType(tuple((field.name, str(field.type)) for field in value.schema))
    for _, cls in type_classes:  # those of one class of values have no parameters
        try:
            kind = cls.from_params(())
        except (TypeError, ValueError):
            continue
        if cls.mismatch is not BaseType.mismatch and kind.mismatch(value) is None:
            return kind
    raise WireError(f"a {type(value).__name__} has no type that is known, so it stays here")

"""Ranges as a user writes them: ``(low, high)``."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from mplang_core.errors import TraceError
from mplang_core.ir.source_line import at


def read_range(found: Any, what: str = "a range") -> tuple[float, float]:
    """Return the range that a user declares.

    Args:
        found: ``(low, high)``, numbers that are finite or infinite.
        what: for messages.

    Raises:
        TraceError: it is something else, or low is above high.

    Example:
        >>> read_range((0, 1e6))
        (0, 1000000.0)
    """
    try:
        low, high = map(_number, found)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not low <= high:
        raise TraceError(
            f"{at()}{what} is (low, high), two real numbers, low not above high, got "
            f"{reprlib.repr(found)}"
        )
    return low, high


def _number(end: Any) -> float:
    if isinstance(end, bool | np.bool_) or not isinstance(end, int | float | np.number):
        raise TypeError
    number: float = end.item() if isinstance(end, np.number) else end
    if isinstance(number, complex):
        raise TypeError
    return number

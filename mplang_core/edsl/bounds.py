"""Validation of value ranges, ``(low, high)``."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from mplang_core.errors import TraceError
from mplang_core.ir.source_line import at


def read_range(found: Any, what: str = "a range") -> tuple[float, float]:
    """Return a range that a user declares, validated.

    Args:
        found: ``(low, high)``, two real numbers, finite or infinite.
        what: the name of the range in messages.

    Returns:
        The two bounds, both inclusive.

    Raises:
        TraceError: it is not a pair of real numbers, or low is above high.

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
            f"{reprlib.repr(found)}",
            code="T017",
        )
    return low, high


def _number(end: Any) -> float:
    if isinstance(end, bool) or not isinstance(end, int | float | np.integer | np.floating):
        raise TypeError
    number: float = end.item() if isinstance(end, np.number) else end
    return number

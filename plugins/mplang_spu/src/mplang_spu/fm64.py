"""FM64: the integers that it compares, and words for what it does not hold."""

from __future__ import annotations

from mplang_analysis import Interval

LIMIT = 2**62
"""Integers that FM64 compares are from -LIMIT to LIMIT - 1: comparisons subtract."""

FRACTIONS = "has fractions, of which FM64 keeps 18 bits"
ADVICE = "where it is smaller, mp.seal(x, range=…) declares that"


def holds(x: Interval) -> bool:
    """Return whether FM64 compares all integers of an interval."""
    return x.low >= -LIMIT and x.high < LIMIT


def beyond(what: str, x: Interval) -> str:
    """Return why something needs FM128 that FM64 does not hold: integers of an interval."""
    size = f"may be as large as {float(x.largest):.2g}" if x.known else "may be any of 64 bits"
    return f"{what} {size}, and FM64 compares integers below 2^62 = 4.6e18"

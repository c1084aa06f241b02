"""A colour per party."""

from __future__ import annotations

__all__ = ["colour"]

PALETTE = ("#cfe2ff", "#ffe5b4", "#d1f0d1", "#f5d0e6", "#e2d9f3", "#fff3b0", "#c8f1f1", "#f6d5c5")


def colour(rank: int) -> str:
    """Return the colour of a party; they repeat after eight.

    Example:
        >>> colour(0), colour(8)
        ('#cfe2ff', '#cfe2ff')
    """
    return PALETTE[rank % len(PALETTE)]

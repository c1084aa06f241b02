"""Remarks on workers that are not observable."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import warn


def not_observable(*names: str) -> str:
    """Return in words that workers cannot be watched.

    Example:
        >>> not_observable("bank")
        'worker bank is not observable: its owner reports no ops, times and bytes'
        >>> not_observable("bank", "shop")
        'workers bank, shop are not observable: their owners report no ops, times and bytes'
    """
    if len(names) == 1:
        return f"worker {names[0]} is not observable: its owner reports no ops, times and bytes"
    told = ", ".join(names)
    return f"workers {told} are not observable: their owners report no ops, times and bytes"


def warn_of_unobserved(names: Sequence[str]) -> None:
    """Warn at the user's line that a recording has nothing of some workers."""
    if names:
        warn(f"{not_observable(*names)}, so the recording has none", RuntimeWarning)

"""Depth of nested brackets, checked before a recursive parser reads a text."""

from __future__ import annotations

import numpy as np

_OPENING, _CLOSING, _QUOTE = b"([{<", b")]}>", ord('"')
_OTHERS = bytes(sorted(set(range(256)) - {*_OPENING, *_CLOSING, _QUOTE}))
_STEPS = np.zeros(256, np.int32)
_STEPS[list(_OPENING)], _STEPS[list(_CLOSING)] = 1, -1


def check_nesting(text: str, deepest: int) -> None:
    """Refuse text whose brackets nest deeply, before a recursive parser reads it.

    Counts ``()``, ``[]``, ``{}`` and ``<>`` in one pass; the brackets of arrows (``->``) and of
    strings in double quotes do not count.

    Raises:
        ValueError: the brackets nest deeper than ``deepest``.

    Example:
        >>> check_nesting("f(x[0]) -> y", deepest=2)
        >>> check_nesting("f(x[y[0]])", deepest=2)
        Traceback (most recent call last):
        ValueError: the code nests brackets deeper than 2
    """
    marks = np.frombuffer(text.encode().replace(b"->", b"").translate(None, _OTHERS), np.uint8)
    quoted = np.cumsum(marks == _QUOTE) % 2 == 1
    depth = np.cumsum(np.where(quoted, 0, _STEPS[marks]))
    lowest = np.minimum.accumulate(np.minimum(depth, 0))  # one that closes nothing counts nothing
    if (depth - lowest).max(initial=0) > deepest:
        raise ValueError(f"the code nests brackets deeper than {deepest}")

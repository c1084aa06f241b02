"""The names of a function's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def parameter_names(fn: Callable[..., Any], count: int) -> list[str]:
    """Return the names of a function's first arguments by position, where they are known.

    Example:
        >>> parameter_names(lambda x, *more: x, 3)
        ['x', 'more.0', 'more.1']
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for rest in (p.name for p in parameters if p.kind is p.VAR_POSITIONAL):
        names += [f"{rest}.{i}" for i in range(count - len(names))]
    return names[:count]

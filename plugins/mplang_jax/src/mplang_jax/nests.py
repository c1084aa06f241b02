"""Classes that are nests to JAX: those that were registered with its trees. Imports no JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Rule: TypeAlias = tuple[
    Callable[[Any], tuple[Iterable[Any], Any]], Callable[[Any, Iterable[Any]], Any]
]


def rule_of(cls: type) -> Rule | None:
    """Return how JAX takes a registered class apart, and puts it together; ``None`` for another.

    Args:
        cls: a class. Where JAX was not imported, none is registered.
    """
    if cls.__module__ in ("builtins", "collections"):  # nests to everybody, and already known
        return None
    trees = sys.modules.get("jax._src.tree_util")
    entry = getattr(trees, "_registry", {}).get(cls)
    return None if entry is None else (entry.to_iter, entry.from_iter)

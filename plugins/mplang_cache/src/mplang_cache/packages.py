"""Packages that functions name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from mplang_core.ext import free_variables, names_of


def packages_of(fn: Callable[..., Any]) -> frozenset[str]:
    """Return the packages that a function names: by globals, closure variables and imports.

    A frontend tells by it whether a function is one of its own.

    Args:
        fn: a function; of another callable, its own package counts.

    Example:
        >>> import math
        >>> sorted(packages_of(lambda x: math.sqrt(x)))
        ['math']
    """
    while isinstance(fn, functools.partial | MethodType):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__func__
    if not isinstance(fn, FunctionType):
        return frozenset({package_of(fn), package_of(type(fn))})
    return frozenset(map(package_of, free_variables(fn))) | names_of(fn.__code__).imports


def package_of(item: Any) -> str:
    """Return the package of a module, or of an object's ``__module__``; empty if it has none."""
    name = item.__name__ if isinstance(item, ModuleType) else getattr(item, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""

"""Packages that functions name."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, get_args

from mplang_core.ext import free_variables, names_of


def packages_of(fn: Callable[..., Any]) -> frozenset[str]:
    """Return the packages that a function names.

    It names them by globals, closure variables and imports, by defaults and by annotations.

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
    signed = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
    for hint in fn.__annotations__.values():
        signed += _named(hint, fn.__globals__)
    named = [*free_variables(fn), *signed, *map(type, signed)]
    return frozenset(map(package_of, named)) | names_of(fn.__code__).imports


def _named(hint: Any, scope: Mapping[str, Any]) -> list[Any]:
    """Return what an annotation names: classes, or of a text the globals in it."""
    if isinstance(hint, str):
        return [scope[name] for name in re.findall(r"[^\W\d]\w*", hint) if name in scope]
    return [hint, *(each for part in get_args(hint) for each in _named(part, scope))]


def package_of(item: Any) -> str:
    """Return the package of a module, or of an object's ``__module__``; empty if it has none."""
    name = item.__name__ if isinstance(item, ModuleType) else getattr(item, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""

"""Packages that functions name."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, get_args

from mplang_cache.reads import uses_of
from mplang_core.ext import free_variables, is_skipped


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
    imports = {found.module.partition(".")[0] for found in uses_of(fn.__code__).imports}
    return frozenset(map(package_of, named)) | imports


def _named(hint: Any, scope: Mapping[str, Any]) -> list[Any]:
    """Return what an annotation names: classes, or of a text the globals in it."""
    if isinstance(hint, str):
        return [scope[name] for name in re.findall(r"[^\W\d]\w*", hint) if name in scope]
    return [hint, *(each for part in get_args(hint) for each in _named(part, scope))]


def package_of(item: Any) -> str:
    """Return the package of a module, or of an object's ``__module__``; empty if it has none."""
    return module_of(item).partition(".")[0]


def module_of(item: Any) -> str:
    """Return the name of a module, or an object's ``__module__``, without asking the object."""
    kind = type(item)
    if issubclass(kind, ModuleType):
        name = object.__getattribute__(item, "__dict__").get("__name__")
    elif issubclass(kind, type):
        name = type.__dict__["__module__"].__get__(item)
    elif kind in (FunctionType, BuiltinMethodType):
        name = item.__module__
    else:
        name = inspect.getattr_static(item, "__module__", None)
    return name if isinstance(name, str) else ""


@functools.lru_cache(maxsize=4096)
def is_installed(package: str) -> bool:
    """Return whether a package is Python's, the framework's or installed: none of them changes."""
    if package in sys.stdlib_module_names or is_skipped(package):
        return True
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))

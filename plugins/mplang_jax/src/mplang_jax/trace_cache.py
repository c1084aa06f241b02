"""Cache keys of compiled functions. Imports JAX."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType
from typing import Any

import jax
from jax._src.config import trace_context

from mplang_core import BaseType, FeSignature
from mplang_core.ext import flatten

_JITTED: type = type(jax.jit(lambda: None))
_LITERALS = (bool, int, float, complex, str, bytes, type(None))


def cache_key(fn: Callable[..., Any], signature: FeSignature) -> Hashable | None:
    """Return the cache key of a function and a signature.

    A jitted function is assumed not to change after its first call, as JAX itself does; functions
    of JAX and operators never change. Any other function may have changed captured values, and is
    traced each time.

    Args:
        fn: the function.
        signature: its arguments.

    Returns:
        The key; ``None`` if the function must be traced again.
    """
    if not _is_immutable(fn):
        return None
    leaves, spec = flatten((signature.args, dict(signature.kwargs)))
    if not all(isinstance(leaf, BaseType) or type(leaf) in _LITERALS for leaf in leaves):
        return None
    shown = tuple(
        leaf if isinstance(leaf, BaseType) else (type(leaf), repr(leaf)) for leaf in leaves
    )
    return (weakref.ref(fn), spec, shown, trace_context())


def _is_immutable(fn: Any) -> bool:
    if isinstance(fn, _JITTED):
        return True
    if isinstance(fn, BuiltinFunctionType):
        return fn.__module__ == "_operator"
    module = getattr(fn, "__module__", None) or ""
    return module.partition(".")[0] == "jax" and getattr(fn, "__closure__", None) is None

"""Errors of JAX while it traces, with the user's line and what to do. Imports no JAX."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from mplang_cache import is_installed

from mplang_core import BaseType
from mplang_core.ext import Location, TraceError, is_skipped, raised

LEAKED = (
    "a value leaked out of the function that it was traced in, which has ended; return it from "
    "that function, and pass what the call gives as an argument"
)

_ADVICE = {
    "TracerBoolConversionError": "instead of `if` use jnp.where or jax.lax.cond",
    "TracerArrayConversionError": "use jnp instead of np inside of the function",
    "ConcretizationTypeError": "what is to be a number must not depend on the arguments",
    "OverflowError": "a Python number takes the type of what it meets, and this one is too "
    "large for that; write np.int64(...) around it, or float(...) if it is 2**63 or more",
    "TracerIntegerConversionError": "what is to be a number must not depend on the arguments",
    "UnexpectedTracerError": LEAKED,
}


def told(error: Exception, fn: Callable[..., Any], operands: Sequence[BaseType]) -> TraceError:
    """Return an error of JAX as one of ours.

    Args:
        error: the error.
        fn: the function that was traced.
        operands: the types of its operands.
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    reason = str(error).split("\n", 1)[0]
    advice = _advice(error)
    return TraceError(
        f"{_line_of(error)}JAX cannot trace {name}({', '.join(map(str, operands))}): "
        f"{type(error).__name__}: {reason}{f' Hint: {advice}' if advice else ''}",
        code="T011",
    )


def _line_of(error: Exception) -> str:
    """Return the innermost line of the user as a prefix: not one of a library that is called."""
    own = [place for package, place in _frames(error) if not is_installed(package)]
    return f"{own[-1]}: " if own else raised(error)


def _frames(error: Exception) -> list[tuple[str, Location]]:
    """Return the frames that are not of the framework or JAX: the package and the line of each."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if not is_skipped(module):
            found.append((module.partition(".")[0], Location(frame.f_code.co_filename, line)))
    return found


def _advice(error: Exception) -> str:
    kind, frames = type(error).__name__, _frames(error)
    if kind.startswith("Tracer") and frames and is_installed(frames[-1][0]):
        return (
            f"{frames[-1][0]} computes with NumPy, which takes no values that are traced; use jnp, "
            "and of a Series or DataFrame that is captured its array, as by .to_numpy()"
        )
    if kind == "TypeError" and "as an abstract array" in str(error):
        return (
            "JAX takes arrays of numbers alone; strings and dates are columns of tables, or are "
            "numbered before, as by np.unique(names, return_inverse=True)"
        )
    return _ADVICE.get(kind, "")

"""Errors of JAX while it traces, with the user's line and what to do. Imports no JAX."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from mplang_cache import is_installed

from mplang_core import BaseType
from mplang_core.ext import Location, TraceError, is_skipped, raised
from mplang_jax.advice import advice_for

LEAKED = (
    "a value leaked out of the function that it was traced in, which has ended; return it from "
    "that function, and pass what the call gives as an argument"
)

_TRACING = frozenset({"jax", "jaxlib", "numpy", "optree"})

_DETAIL = re.compile(
    r"The (output of|input carry|size argument|error arose)|It arose in|'\w+' argument of|When jit"
)
"""Begins lines of JAX's messages that tell more than the first one; others have its own lines."""


def told(error: Exception, fn: Callable[..., Any], operands: Sequence[BaseType]) -> TraceError:
    """Return an error of JAX as one of ours.

    Args:
        error: the error.
        fn: the function that was traced.
        operands: the types of its operands.
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    first, *others = str(error).splitlines() or [""]
    details = (line for line in others if _DETAIL.match(line))
    reason = " ".join([first, *details]).replace("DynamicJaxprTracer", "a traced array")
    advice = _advice(error)
    return TraceError(
        f"{_line_of(error)}JAX cannot trace {name}({', '.join(map(str, operands))}): "
        f"{type(error).__name__}: {reason}{f' Hint: {advice}' if advice else ''}",
        code="T011",
    )


def _line_of(error: Exception) -> str:
    """Return the innermost line of the user as a prefix: not one of a library that is called."""
    own = _own(error)
    return f"{own[-1]}: " if own else raised(error)


def _own(error: Exception) -> list[Location]:
    """Return the user's lines, the innermost last."""
    return [place for package, place in _frames(error) if not is_installed(package)]


def _frames(error: Exception) -> list[tuple[str, Location]]:
    """Return the frames of the user and of libraries that he calls: package and line of each."""
    found = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if _is_called(package) or not is_skipped(module):
            found.append((package, Location(frame.f_code.co_filename, line)))
    return found


def _is_called(package: str) -> bool:
    """Return whether it is a library that the user calls, as pandas, and no part of tracing."""
    own = package.startswith("mplang_") or package in _TRACING or package in sys.stdlib_module_names
    return not own and is_installed(package)


def _advice(error: Exception) -> str:
    kind, frames = type(error).__name__, _frames(error)
    if kind.startswith("Tracer") and frames and is_installed(frames[-1][0]):
        return (
            f"{frames[-1][0]} computes with NumPy, which takes no values that are traced; use jnp, "
            "and of a Series or DataFrame that is captured its array, as by .to_numpy()"
        )
    if kind == "UnexpectedTracerError":
        return LEAKED
    line = linecache.getline(own[-1].file, own[-1].line) if (own := _own(error)) else ""
    return advice_for(kind, str(error), line)

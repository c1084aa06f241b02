"""Source lines of the user, found in stacks and tracebacks."""

from __future__ import annotations

import functools
import os
import sys
import types

from mplang_core.ir.graph import Location

_SKIPPED = {"optree", "contextlib", "functools", "numpy", "jax", "jaxlib"}


def skip_package(module: str) -> None:
    """Exclude a package from source lines, as a part of the framework.

    Args:
        module: the name of the package or of a module in it.
    """
    _SKIPPED.add(module.partition(".")[0])
    is_skipped.cache_clear()


@functools.lru_cache(maxsize=4096)
def is_skipped(module: str) -> bool:
    """Return whether a module belongs to the framework, a plugin or one of their libraries."""
    package = module.partition(".")[0]
    return package in _SKIPPED or package.startswith("mplang_")


def caller() -> Location | None:
    """Return the innermost line of the user on the stack, ``None`` if there is none."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_skipped(frame.f_globals.get("__name__", "")):
            return Location(os.fspath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return None


def raised(error: BaseException) -> str:
    """Return the innermost line of the user in a traceback as the prefix of a message.

    Args:
        error: a raised error; without such a line, :func:`at` is returned.
    """
    found = None
    trace = error.__traceback__
    while trace is not None:
        if not is_skipped(trace.tb_frame.f_globals.get("__name__", "")):
            found = Location(os.fspath(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
        trace = trace.tb_next
    return f"{found}: " if found is not None else at()


def at() -> str:
    """Return the user's line as the prefix of a message: ``"demo.py:12: "``; empty if unknown."""
    location = caller()
    return f"{location}: " if location is not None else ""

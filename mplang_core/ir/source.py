"""Where in the user's source we are."""

from __future__ import annotations

import os
import sys
import types

from mplang_core.ir.graph import Location

__all__ = ["at", "caller", "raised", "skip_package"]

_SKIPPED = {"optree", "contextlib", "functools", "numpy", "jax", "jaxlib"}


def skip_package(module: str) -> None:
    """Treat a plugin's package as part of the framework: its lines are never the user's."""
    _SKIPPED.add(module.partition(".")[0])


def caller() -> Location | None:
    """Return the innermost line that is neither the framework's nor a plugin's."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        package = module.partition(".")[0]
        if package not in _SKIPPED and not package.startswith("mplang_"):
            return Location(os.fspath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return None


def raised(error: BaseException) -> str:
    """Return the innermost line of the user's in an error's traceback, as :func:`at` does."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _SKIPPED and not module.startswith("mplang_"):
            found = Location(os.fspath(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
        trace = trace.tb_next
    return f"{found}: " if found is not None else at()


def at() -> str:
    """Return the user's line as the beginning of a message: ``"demo.py:12: "``."""
    location = caller()
    return f"{location}: " if location is not None else ""

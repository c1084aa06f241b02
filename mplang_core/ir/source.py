"""Where in the user's source we are."""

from __future__ import annotations

import os
import sys
import types

from mplang_core.ir.graph import Location

_SKIPPED = {"optree", "contextlib", "functools", "numpy", "jax", "jaxlib"}


def skip_package(module: str) -> None:
    """Treat a plugin's package as part of the framework: its lines are never the user's."""
    _SKIPPED.add(module.partition(".")[0])


def is_framework(file: str) -> bool:
    """Tell whether a file is of the framework, of a plugin, or of a library that it stands on."""
    path = os.path.realpath(file)
    return any(path.startswith(root) for root in _roots())


def _roots() -> set[str]:
    """Return the folders of packages, and the files of modules, whose lines are never shown."""
    found = {
        os.path.realpath(place)
        for name, module in list(sys.modules.items())
        if _is_skipped(name) and "." not in name
        for place in getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
        if place
    }
    return {f"{root}{os.sep}" if os.path.isdir(root) else root for root in found}


def _is_skipped(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _SKIPPED or package.startswith("mplang_")


def caller() -> Location | None:
    """Return the innermost line that is neither the framework's nor a plugin's."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_skipped(frame.f_globals.get("__name__", "")):
            return Location(os.fspath(frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back
    return None


def raised(error: BaseException) -> str:
    """Return the innermost line of the user's in an error's traceback, as :func:`at` does."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        if not _is_skipped(trace.tb_frame.f_globals.get("__name__", "")):
            found = Location(os.fspath(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
        trace = trace.tb_next
    return f"{found}: " if found is not None else at()


def at() -> str:
    """Return the user's line as the beginning of a message: ``"demo.py:12: "``."""
    location = caller()
    return f"{location}: " if location is not None else ""

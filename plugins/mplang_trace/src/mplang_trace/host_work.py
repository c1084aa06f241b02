"""Work of a host before and after runs, by the stack of its thread."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType

import mplang_core as mp
from mplang_core.ext import Location, is_skipped

WORK = {
    inspect.unwrap(function).__code__: work
    for function, work in (
        (mp.trace, "compiling"),
        (mp.compile, "compiling"),
        (mp.fetch, "fetching"),
        (mp.evaluate, "starting"),
        (mp.put, "putting"),
        (mp.seal, "sealing"),
    )
}
"""What a thread is at, by the function that is innermost on its stack."""


def busy_with(thread: int) -> tuple[str, str]:
    """Return what a thread does for mplang, and the user's line; two empty texts for nothing.

    Args:
        thread: its identifier.

    Example:
        >>> import threading
        >>> busy_with(threading.get_ident())
        ('', '')
    """
    work = line = ""
    for frame in _stack(thread):
        module = frame.f_globals.get("__name__", "")
        work = work or WORK.get(frame.f_code, "")
        if not line and not _is_library(module):
            line = str(Location(frame.f_code.co_filename, frame.f_lineno))
        if work and line:
            return work, line
    return work, ""


def _is_library(module: str) -> bool:
    return is_skipped(module) or module.partition(".")[0] in sys.stdlib_module_names


def _stack(thread: int) -> Iterator[FrameType]:
    """Yield the frames of a thread as they are now, the innermost first."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back

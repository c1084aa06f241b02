"""Tracebacks of the user's lines alone, without those of mplang and its libraries."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import ParamSpec, TypeVar

from mplang_core.errors import MPLangError
from mplang_core.ir.source_line import is_skipped

FULL = "MPLANG_TRACEBACK"
NOTE = f"(lines of mplang and its libraries are left out; {FULL}=full shows them)"
TOLD = MPLangError, KeyboardInterrupt

P = ParamSpec("P")
R = TypeVar("R")


def of_user(fn: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the interface: errors that leave it show the user's lines alone.

    Errors that are not of mplang and come from inside of it keep all lines: they are faults.
    Ctrl-C is none.
    """

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            is_told = isinstance(error, TOLD) or _is_of_user([*_frames(error)][-1])
            if is_told and os.environ.get(FULL) != "full":
                _shorten(error)
            raise

    return call


def _frames(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_of_user(trace: TracebackType) -> bool:
    return not is_skipped(trace.tb_frame.f_globals.get("__name__", ""))


def _shorten(error: BaseException) -> None:
    """Remove the lines of the framework from an error and its causes; tell of it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        short: TracebackType | None = None
        for part in filter(_is_of_user, reversed([*_frames(each)])):
            short = TracebackType(short, part.tb_frame, part.tb_lasti, part.tb_lineno)
        each.__traceback__ = short
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    if NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)

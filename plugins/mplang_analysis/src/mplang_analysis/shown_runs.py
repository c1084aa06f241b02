"""Hosts whose runs a person sees: each ends with one line, also if Ctrl-C ends it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

from mplang_analysis.cost_model import sends_untold
from mplang_core import Program
from mplang_core.ext import ObservedHost, PartyState, caller

SUMMARY = "MPLANG_SUMMARY"
"""Environment variable: ``always`` or ``never``; else a line is shown where a person watches."""

FULL = "MPLANG_TRACEBACK"  # =full shows all lines of errors, as it does for others

_quiet: ContextVar[bool] = ContextVar("mplang_quiet", default=False)
_watched: ContextVar[bool] = ContextVar("mplang_watched", default=False)


class ShownHost(ObservedHost):
    """Base class of hosts whose evaluations end with a line such as ``0.6 s, 25 MB, 3 parties``.

    It is shown in IPython, notebooks, at Python's prompt and by ``mplang run`` in a terminal, and
    elsewhere with ``MPLANG_SUMMARY=always``. Ops outside of a program, and the rehearsal of one,
    have none.
    """

    def evaluate(self, program: Program, inputs: Sequence[object]) -> list[object]:
        """Run a program, and show what it took.

        Args:
            program: the program.
            inputs: its inputs.

        Returns:
            Its results.

        Raises:
            KeyboardInterrupt: the user has ended it; all parties have been told to.
        """
        if _quiet.get():
            return super().evaluate(program, inputs)
        to = _shown_to()
        before, begin = sent_bytes(self.progress()) if to else 0, time.perf_counter()
        token = _quiet.set(True)
        try:
            results = super().evaluate(program, inputs)
        except KeyboardInterrupt as error:
            _tell_interrupt(error)
            raise
        finally:
            _quiet.reset(token)
        if to is not None:
            took, states = time.perf_counter() - begin, self.progress()
            # a simulator's parties are linked in memory by their protocols, unless it records
            partly = self.compares and self.observe is None and sends_untold(program)
            print(summary(took, before, states, self.names, partly), file=to, flush=True)
        return results

    def evaluate_step(self, program: Program, inputs: Sequence[object]) -> list[object]:
        """Run the program of an eager call, which no line is shown of."""
        token = _quiet.set(True)
        try:
            return super().evaluate_step(program, inputs)
        except KeyboardInterrupt as error:
            _tell_interrupt(error)
            raise
        finally:
            _quiet.reset(token)


def summary(
    seconds: float,
    sent_before: int,
    states: Sequence[PartyState],
    names: Sequence[str],
    partly: bool = False,
) -> str:
    """Return what a run took, in one line.

    Args:
        seconds: how long it took, by the clock of the host.
        sent_before: bytes that the parties had sent before it.
        states: the states of the parties after it.
        names: their names.
        partly: whether protocols have sent what is not counted.

    Example:
        >>> summary(0.64, 0, [PartyState()] * 3, ["a", "b", "c"])
        '0.64 s, 0 bytes, 3 parties'
        >>> summary(12.3, 0, [PartyState(), PartyState(observable=False)], ["a", "b"])
        '12 s, 0 bytes, 2 parties; b is not observable, its bytes are not in it'
    """
    hidden = [name for name, each in zip(names, states, strict=True) if not each.observable]
    parties = f"{len(states)} part{'y' if len(states) == 1 else 'ies'}"
    parts = [f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s", parties]
    if len(hidden) == len(states):
        return f"{', '.join(parts)}; none is observable, so bytes are not known"
    sent = _size(max(0, sent_bytes(states) - sent_before))
    parts.insert(1, f"{sent} besides what protocols send" if partly else sent)
    if not hidden:
        return ", ".join(parts)
    one = len(hidden) == 1
    who = f"{', '.join(hidden)} {'is' if one else 'are'} not observable"
    return f"{', '.join(parts)}; {who}, {'its' if one else 'their'} bytes are not in it"


def sent_bytes(states: Sequence[PartyState]) -> int:
    """Return how many bytes the parties have sent to each other, of those that are observable."""
    return sum(link.sent for each in states for link in each.links.values())


@contextmanager
def watched_by_a_person() -> Iterator[None]:
    """Show a line at the end of each run inside of ``with`` if standard error is a terminal."""
    token = _watched.set(True)
    try:
        yield
    finally:
        _watched.reset(token)


def _shown_to() -> TextIO | None:
    """Return where the line of a run is shown; ``None`` if nobody watches."""
    wish = os.environ.get(SUMMARY, "")
    if wish == "never":
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        return sys.stdout if hasattr(shell, "kernel") else sys.stderr  # which notebooks show in red
    shown = wish == "always" or hasattr(sys, "ps1") or (_watched.get() and sys.stderr.isatty())
    return sys.stderr if shown else None


def _size(count: int) -> str:
    """Return a number of bytes with two digits or more, such as ``25 MB``."""
    if count < 1000:
        return f"{count} bytes"
    size, units = float(count), iter(("kB", "MB", "GB", "TB"))
    while (unit := next(units)) != "TB" and size >= 999_500:
        size /= 1000
    return f"{size / 1000:.{0 if size >= 9_950 else 1}f} {unit}"


# -- Ctrl-C


def _tell_interrupt(error: KeyboardInterrupt) -> None:
    """Mark an interrupt to be shown in one line, which says where the run was."""
    if os.environ.get(FULL) == "full" or hasattr(error, "_render_traceback_"):
        return
    where = getattr(error, "location", None) or caller()
    error.args = (f"the run was stopped{f' at {where}' if where else ''}, at all parties",)
    line = f"KeyboardInterrupt: {error}"
    error._render_traceback_ = lambda: [line]  # type: ignore[attr-defined]  # as IPython asks
    if sys.excepthook is not _hook:
        _others.append(sys.excepthook)
        sys.excepthook = _hook


_others: list[Callable[..., object]] = []
"""The hook for uncaught errors that was there before."""


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an interrupt of a run in one line, and other errors as before."""
    lines = getattr(error, "_render_traceback_", None)
    if kind is KeyboardInterrupt and lines is not None:
        print(*lines(), sep="\n", file=sys.stderr)
    else:
        _others[-1](kind, error, trace)

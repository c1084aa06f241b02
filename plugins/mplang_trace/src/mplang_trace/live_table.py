"""Live table of the parties' progress, in the terminal or in a notebook."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplang_analysis import TextTable
from mplang_analysis.ext import turn_of

from mplang_core.ext import ObservedHost, PartyState, SimpHost
from mplang_trace.host_work import busy_with
from mplang_trace.long_ops import LongOps
from mplang_trace.screens import Surface, surface_of

if TYPE_CHECKING:
    from rich.console import Console

AFTER = 1.0  # seconds of a program before the table appears
LONG = 1.0  # seconds in one op and line that are shown
EVERY = 0.25  # seconds
COLUMNS = ("party", "state", "op", "line", "sent", "received")


@contextlib.contextmanager
def watch(host: SimpHost, console: Console | None = None) -> Iterator[None]:
    """Show the progress of what runs inside of ``with`` for more than a second.

    The table has a row per party: its state, its current op with the line and, of a long one such
    as a query, the seconds since it was first seen there, and the bytes that it sent and received.
    The row of the host tells what it compiles, seals or fetches. A loop has its turn, ``turn 7``,
    or ``7 of 20`` where it was unrolled. Of an op that takes longer than ten seconds, if its costs
    can be told as those of an SPU, it says how far it is. The table disappears when nothing runs
    any more.

    Args:
        host: a host of any backend; nothing is shown of one that is not an ``ObservedHost``.
        console: the console; by default the output of the cell in a notebook, elsewhere stderr, if
            that is a terminal.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.watch(sim):
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(7)))
        [array(7), array(7)]
    """
    surface = surface_of(console)
    if surface is None or not isinstance(host, ObservedHost):
        yield
        return
    over = threading.Event()
    shown = _Watch(host, surface, over, threading.get_ident())
    # a notebook puts what a thread displays below the cell that its context is of
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(shown.run,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Watch:
    """Thread that draws a table while a host is at work.

    Args:
        host: the host.
        surface: where it is drawn.
        over: set at the end of ``with``.
        thread: who works for the host.
    """

    def __init__(
        self, host: ObservedHost, surface: Surface, over: threading.Event, thread: int
    ) -> None:
        self.host, self.surface, self.over, self.thread = host, surface, over, thread

    def works(self) -> bool:
        """Return whether the host is at work, once it was waited for."""
        busy = self.host.at() is not None or bool(busy_with(self.thread)[0])
        return busy and not self.over.wait(EVERY)

    def run(self) -> None:
        """Draw until it is over."""
        while not self.over.wait(EVERY):
            begun = time.monotonic()
            while self.works():
                if time.monotonic() - begun >= AFTER:
                    self.draw(begun)

    def draw(self, begun: float) -> None:
        """Draw while the host is at work, if nobody else draws there."""
        seen = Seen()
        with self.surface.screen() as screen:
            while screen is not None and self.works():
                screen.draw(_table(self.host, time.monotonic() - begun, seen, self.thread))


class Seen:
    """Last known positions of parties, and since when, by this machine's clock.

    Attributes:
        long_ops: what is known of ops that take long.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[PartyState, float, int]] = {}
        self.long_ops = LongOps()

    def since(self, name: str, state: PartyState, now: float, sent: int) -> tuple[float, int]:
        """Return for how long a party has been in the same op and line, and what was sent since.

        Args:
            name: its name.
            state: its state now.
            now: in seconds.
            sent: bytes that all parties have sent.
        """
        before, begin, sent_before = self._last.get(name, (state, now, sent))
        if (before.op, before.location) != (state.op, state.location):
            begin, sent_before = now, sent
        self._last[name] = state, begin, sent_before
        return now - begin, sent - sent_before


def _table(
    host: ObservedHost, took: float, seen: Seen | None = None, thread: int | None = None
) -> TextTable:
    from rich.filesize import decimal

    rows = [_host_row(host, thread)]
    states = host.progress()
    sent = {name: _sent(state) for name, state in zip(host.names, states, strict=True)}
    for name, state in zip(host.names, states, strict=True):
        if not state.observable:
            rows.append([name, state.state, "not observable", "", "", ""])
            continue
        received = sum(link.received for link in state.links.values())
        since = _since(host, name, state, took, sum(sent.values()), seen)
        line = _with(state.location or "", state.turn, since)
        rows.append(
            [name, state.state, state.op or "", line, decimal(sent[name]), decimal(received)]
        )
    return TextTable(f"{took:.0f} s", COLUMNS, rows)


def _host_row(host: ObservedHost, thread: int | None) -> list[str]:
    """Return what the host does: an op, or something before anything runs."""
    at = host.at()
    if at is not None:
        line, turn = str(at.location or ""), turn_of(host)
        return ["host", "running", at.opcode, _with(line, turn), "", ""]
    work, line = busy_with(thread) if thread is not None else ("", "")
    return ["host", work or "idle", "", line, "", ""]


def _with(line: str, *notes: str) -> str:
    """Return a line with notes in brackets."""
    words = ", ".join(filter(None, notes))
    return f"{line} ({words})" if words else line


def _sent(state: PartyState) -> int:
    return sum(link.sent for link in state.links.values())


def _since(
    host: ObservedHost, name: str, state: PartyState, took: float, sent: int, seen: Seen | None
) -> str:
    """Return for how long a party has been in a long op, and how far it is, if that is known."""
    if seen is None or not state.op:
        return ""
    passed, moved = seen.since(name, state, took, sent)
    if passed < LONG:
        return ""
    progress = seen.long_ops.progress(host, state, passed, moved)
    return ", ".join(filter(None, [f"{passed:.0f} s", progress]))

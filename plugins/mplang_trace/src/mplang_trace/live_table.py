"""Live table of the parties' progress in the terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplang_core.ext import ObservedHost, PartyState, SimpHost
from mplang_trace.long_ops import LongOps

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

AFTER = 1.0  # seconds of a program before the table appears
LONG = 1.0  # seconds in one op and line that are shown
EVERY = 0.25  # seconds

terminal = threading.Lock()
"""Lock of the terminal; a thread that cannot acquire it at once draws nothing."""


@contextlib.contextmanager
def watch(host: SimpHost, console: Console | None = None) -> Iterator[None]:
    """Show the progress of programs inside of ``with`` that run for more than a second.

    The table has a row per party: its state, its current op with the line and, of a long one such
    as a query, the seconds since it was first seen there, and the bytes that it sent and received.
    Of an op that takes longer than ten seconds and whose costs can be told, as one of an SPU, it
    says how far it is. It disappears at the end of the program.

    Args:
        host: a host of any backend; nothing is shown of one that is no ``ObservedHost``.
        console: the console; by default stderr, if that is a terminal.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.watch(sim):
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(7)))
        [array(7), array(7)]
    """
    if console is None:
        from rich.console import Console as Terminal

        console = Terminal(stderr=True)
    if not (console.is_terminal and isinstance(host, ObservedHost)):
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(host, console, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(host: ObservedHost, console: Console, over: threading.Event) -> None:
    from rich.live import Live

    while not over.wait(EVERY):
        begun = time.monotonic()
        while host.at() is not None and not over.wait(EVERY):
            if time.monotonic() - begun < AFTER or not terminal.acquire(blocking=False):
                continue
            try:
                seen = Seen()
                with Live(console=console, auto_refresh=False, transient=True) as live:
                    while host.at() is not None and not over.wait(EVERY):
                        live.update(_table(host, time.monotonic() - begun, seen), refresh=True)
            finally:
                terminal.release()


class Seen:
    """Where parties were last seen, and since when: by this clock, so that nobody tells a time.

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


def _table(host: ObservedHost, took: float, seen: Seen | None = None) -> Table:
    from rich.filesize import decimal
    from rich.table import Table

    table = Table("party", "state", "op", "line", "sent", "received", title=f"{took:.0f} s")
    at = host.at()
    if at is not None and at.location:
        table.add_row("host", "", at.opcode, str(at.location), "", "")
    states = host.progress()
    sent = {name: _sent(state) for name, state in zip(host.names, states, strict=True)}
    for name, state in zip(host.names, states, strict=True):
        if not state.observable:
            table.add_row(name, state.state, "not observable", "", "", "")
            continue
        received = sum(link.received for link in state.links.values())
        line = (state.location or "") + _since(host, name, state, took, sum(sent.values()), seen)
        table.add_row(
            name, state.state, state.op or "", line, decimal(sent[name]), decimal(received)
        )
    return table


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
    return f" ({passed:.0f} s{', ' * bool(progress)}{progress})"

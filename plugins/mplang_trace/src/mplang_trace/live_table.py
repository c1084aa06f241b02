"""Live table of the parties' progress in the terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplang_core.ext import ObservedHost, PartyState, SimpHost

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
    It disappears at the end of the program.

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
    """Where parties were last seen, and since when: by this clock, so that nobody tells a time."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[PartyState, float]] = {}

    def seconds(self, name: str, state: PartyState, now: float) -> float:
        """Return for how long a party has been in the same op and line.

        Args:
            name: its name.
            state: its state now.
            now: in seconds.
        """
        before, since = self._places.get(name, (state, now))
        if (before.op, before.location) != (state.op, state.location):
            since = now
        self._places[name] = state, since
        return now - since


def _table(host: ObservedHost, took: float, seen: Seen | None = None) -> Table:
    from rich.filesize import decimal
    from rich.table import Table

    table = Table("party", "state", "op", "line", "sent", "received", title=f"{took:.0f} s")
    at = host.at()
    if at is not None and at.location:
        table.add_row("host", "", at.opcode, str(at.location), "", "")
    for name, state in zip(host.names, host.progress(), strict=True):
        if not state.observable:
            table.add_row(name, state.state, "not observable", "", "", "")
            continue
        sent = sum(link.sent for link in state.links.values())
        received = sum(link.received for link in state.links.values())
        passed = 0.0 if seen is None or not state.op else seen.seconds(name, state, took)
        where = state.op or "", (state.location or "") + f" ({passed:.0f} s)" * (passed >= LONG)
        table.add_row(name, state.state, *where, decimal(sent), decimal(received))
    return table

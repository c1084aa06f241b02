"""Live table of the parties' progress in the terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplang_core.ext import ObservedHost, SimpHost

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

AFTER = 1.0  # seconds of a program before the table appears
EVERY = 0.25  # seconds

terminal = threading.Lock()
"""Lock of the terminal; a thread that cannot acquire it at once draws nothing."""


@contextlib.contextmanager
def watch(host: SimpHost, console: Console | None = None) -> Iterator[None]:
    """Show the progress of programs inside of ``with`` that run for more than a second.

    The table has a row per party: its state, its current op with the line, and the bytes that
    it sent and received. It disappears at the end of the program.

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
                with Live(console=console, auto_refresh=False, transient=True) as live:
                    while host.at() is not None and not over.wait(EVERY):
                        live.update(_table(host, time.monotonic() - begun), refresh=True)
            finally:
                terminal.release()


def _table(host: ObservedHost, took: float) -> Table:
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
        where = state.op or "", state.location or ""
        table.add_row(name, state.state, *where, decimal(sent), decimal(received))
    return table

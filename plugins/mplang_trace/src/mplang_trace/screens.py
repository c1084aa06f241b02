"""Screens: where a live table is drawn, a terminal or the output of a notebook's cell."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from mplang_analysis import TextTable

if TYPE_CHECKING:
    from rich.console import Console

terminal = threading.Lock()
"""Lock of the terminal; a thread that cannot acquire it at once draws nothing."""


class Screen(Protocol):
    """Protocol of what a table is drawn on, again and again."""

    def draw(self, table: TextTable) -> None:
        """Draw a table in place of the one before."""


class Surface(Protocol):
    """Protocol of where screens are opened."""

    def screen(self) -> AbstractContextManager[Screen | None]:
        """Return a context that yields a :class:`Screen`, or ``None`` if another has it now."""


def surface_of(console: Console | None) -> Surface | None:
    """Return where tables are drawn; ``None`` for nowhere.

    Args:
        console: a console of rich; by default the notebook, if one runs, else stderr.
    """
    if console is None:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if getattr(shell, "kernel", None) is not None:
            return Notebook()
        from rich.console import Console as Terminal

        # FORCE_COLOR, as notebooks and CI set it, makes no terminal of a pipe
        console = Terminal(stderr=True, force_terminal=sys.stderr.isatty())
    return InTerminal(console) if console.is_terminal else None


class InTerminal:
    """A terminal, which one table has at a time; it is gone when its screen closes.

    Args:
        console: the console of rich.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def screen(self) -> Iterator[Screen | None]:
        """Yield a screen, or ``None`` if another table is on the terminal."""
        if not terminal.acquire(blocking=False):
            yield None
            return
        try:
            from rich.live import Live

            with Live(console=self._console, auto_refresh=False, transient=True) as live:
                yield _Drawn(lambda table: live.update(table.rich(), refresh=True))
        finally:
            terminal.release()


class Notebook:
    """The output of the cell that runs: one display, which is written anew, and emptied at last."""

    @contextmanager
    def screen(self) -> Iterator[Screen | None]:
        """Yield a screen."""
        display = import_module("IPython.display").display
        options = {"raw": True, "display_id": uuid.uuid4().hex}
        is_shown = False

        def draw(table: TextTable) -> None:
            nonlocal is_shown
            shown = {"text/plain": repr(table), "text/html": table._repr_html_()}
            display(shown, **options, update=is_shown)
            is_shown = True

        try:
            yield _Drawn(draw)
        finally:
            if is_shown:
                display({"text/plain": "", "text/html": ""}, **options, update=True)


class _Drawn:
    def __init__(self, draw: Callable[[TextTable], None]) -> None:
        self.draw = draw

"""Progress bars of long uploads and downloads."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mplang_trace import terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

SHOW_AFTER = 1.0  # seconds that a transfer takes before its bar is shown


class ProgressBars:
    """Progress bars of concurrent transfers, each shown after ``SHOW_AFTER`` seconds.

    Args:
        show: whether to show bars; ``None`` for if the console is a terminal.
        console: console of the bars; stderr by default.
    """

    def __init__(self, show: bool | None = None, console: Console | None = None) -> None:
        self._show = show
        self._console = console
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._active = 0

    @contextlib.contextmanager
    def track(self, label: str, size: int | None) -> Iterator[Callable[[int], None]]:
        """Track one transfer.

        Args:
            label: text beside the bar.
            size: total size in bytes, if known.

        Yields:
            A function to call with the size in bytes of each transferred chunk.
        """
        if self._show is False:
            yield lambda count: None
            return
        begin, moved, task = time.monotonic(), 0, None  # type: float, int, TaskID | None

        def advance(count: int) -> None:
            nonlocal moved, task
            moved += count
            if task is None and time.monotonic() - begin >= SHOW_AFTER:
                task = self._add(label, size)
            if task is not None and self._progress is not None:
                self._progress.update(task, completed=moved)

        try:
            yield advance
        finally:
            if task is not None:
                self._remove()

    def _add(self, label: str, size: int | None) -> TaskID | None:
        with self._lock:
            if self._progress is None:
                self._progress = self._start()
            if self._progress is None:
                return None
            self._active += 1
            return self._progress.add_task(label, total=size)

    def _start(self) -> Progress | None:
        from rich import progress
        from rich.console import Console

        # FORCE_COLOR, as notebooks and CI set it, makes no terminal of a pipe
        shown = sys.stderr.isatty() if self._show is None else self._show
        console = self._console or Console(stderr=True, force_terminal=shown)
        if self._show is None and not console.is_terminal:
            self._show = False
            return None
        if not terminal.acquire(blocking=False):
            return None
        started = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        started.start()
        return started

    def _remove(self) -> None:
        """Remove a bar, and stop the display with the last one."""
        with self._lock:
            self._active -= 1
            if self._active == 0 and self._progress is not None:
                self._progress.stop()
                self._progress = None
                terminal.release()

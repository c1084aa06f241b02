"""Jobs of parties, for which the process waits before it exits.

A thread that returns from native code (of DuckDB, JAX or any engine) to an interpreter that has
ended aborts the process: CPython ends the thread there, and C++ does not let it. A run that Ctrl-C
interrupted leaves such threads, and so does one that failed at another party.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

GRACE = 2.0  # seconds after which the process says what it waits for
INTERRUPTED = 130  # exit code of a process that Ctrl-C ended
INTERVAL = 0.01  # seconds between two looks
LEFT = "mplang_left_at_exit"
"""Attribute of a thread that exit does not wait for: its engine sees to that itself."""

_busy: set[threading.Thread] = set()


@contextmanager
def awaited_at_exit() -> Iterator[None]:
    """Delay the exit of the process until the block of this thread ends."""
    thread = threading.current_thread()
    _busy.add(thread)
    try:
        yield
    finally:
        _busy.discard(thread)


def _wait() -> None:
    """Wait for busy threads; Ctrl-C ends the process at once."""
    begin, told = time.monotonic(), False
    try:
        while names := sorted(each.name for each in tuple(_busy) if not getattr(each, LEFT, False)):
            if not told and time.monotonic() - begin > GRACE:
                told = True
                print(f"waiting for {', '.join(names)} to end; Ctrl-C ends it now", file=sys.stderr)
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)  # destructors of libraries would crash


atexit.register(_wait)
